import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { useState } from 'react';

import { changeInstruction, createInstruction, instructionCidsQuery, type Instruction } from '../../api/payments';
import { countLoaded } from '../../api/storage';
import { Button } from '../../components/Button';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, Row, Stack } from '../../components/Row';
import { Select } from '../../components/Select';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as payments from '../../i18n/payments';
import * as reach from '../../i18n/reach';
import { requirementDraft, isOther, NEW_DRAFT, NETWORKS, readDraft, type RequirementDraft } from './requirements';

interface Props {
  /** Changed if it is given, else a new one is created. */
  instruction?: Instruction;
  onClose: () => void;
}

export function InstructionDialog({ instruction, onClose }: Props) {
  const t = useText(payments);
  const r = useText(reach);
  const [name, setName] = useState(instruction?.name ?? '');
  const [description, setDescription] = useState(instruction?.description ?? '');
  const [drafts, setDrafts] = useState<readonly RequirementDraft[]>(
    instruction?.payment_requirements.map(requirementDraft) ?? [NEW_DRAFT],
  );
  const requirements = drafts.map(readDraft).filter((one) => one !== null);
  const files = countLoaded(useInfiniteQuery({ ...instructionCidsQuery(instruction?.id ?? ''), enabled: instruction !== undefined }));
  const changesPrice =
    JSON.stringify(requirements) !== JSON.stringify(instruction?.payment_requirements.map(requirementDraft).map(readDraft));
  const save = useMutation({
    mutationFn: () => {
      const fields = { name: name.trim(), description: description.trim(), payment_requirements: requirements };
      return instruction ? changeInstruction(instruction.id, fields) : createInstruction(fields);
    },
    onSuccess: (saved) => showToast(instruction ? t.changed(saved.name) : t.created(saved.name)),
  });
  return (
    <FormDialog
      title={instruction ? t.changeTitle(instruction.name) : t.create}
      action={instruction ? t.save : t.createAction}
      onClose={onClose}
      onSubmit={save.mutateAsync}
      isDisabled={!name.trim() || requirements.length < drafts.length}
      question={instruction && files !== '0' && changesPrice ? r.priceChanges(files) : ''}
    >
      {instruction && <Note>{t.changeText}</Note>}
      <TextField label={t.name} value={name} onChange={setName} autoComplete="off" autoFocus />
      <TextField label={t.description} hint={t.descriptionHint} value={description} onChange={setDescription} autoComplete="off" />
      {drafts.map((draft, at) => (
        <RequirementFields
          key={at}
          number={at + 1}
          draft={draft}
          onChange={(changed) => setDrafts(drafts.with(at, changed))}
          onRemove={drafts.length > 1 ? () => setDrafts(drafts.toSpliced(at, 1)) : undefined}
        />
      ))}
      <Row>
        <Button onPress={() => setDrafts([...drafts, NEW_DRAFT])}>
          <Plus size={17} aria-hidden /> {t.addRequirement}
        </Button>
      </Row>
    </FormDialog>
  );
}

interface RequirementProps {
  number: number;
  draft: RequirementDraft;
  onChange: (draft: RequirementDraft) => void;
  onRemove: (() => void) | undefined;
}

function RequirementFields({ number, draft, onChange, onRemove }: RequirementProps) {
  const t = useText(payments);
  const set = (change: Partial<RequirementDraft>) => onChange({ ...draft, ...change });
  const isWrong = draft.amount.trim() !== '' && readDraft({ ...draft, payTo: 'x', asset: 'x', network: 'x' }) === null;
  const codeField = (name: 'network' | 'asset' | 'payTo', label: string, hint: string) => (
    <TextField
      label={label}
      hint={hint}
      value={draft[name]}
      onChange={(value) => set({ [name]: value })}
      autoComplete="off"
      monospace
    />
  );
  return (
    <Stack>
      {(onRemove || number > 1) && (
        <Row>
          <h3>{t.requirement(number)}</h3>
          {onRemove && (
            <Button kind="quiet" iconOnly aria-label={t.removeRequirement(number)} onPress={onRemove}>
              <X size={17} aria-hidden />
            </Button>
          )}
        </Row>
      )}
      <Select
        label={t.network}
        choices={NETWORKS.map((id) => ({ id, label: t.networks[id] }))}
        value={draft.choice}
        onChange={(choice) => set({ choice })}
      />
      {isOther(draft) && (
        <>
          {codeField('network', t.networkName, t.networkHint)}
          {codeField('asset', t.asset, t.assetHint)}
        </>
      )}
      <TextField
        label={isOther(draft) ? t.amountUnits : t.amountUsdc}
        hint={isOther(draft) ? undefined : t.amountHint}
        error={isWrong ? (isOther(draft) ? t.unitsError : t.amountError) : undefined}
        value={draft.amount}
        onChange={(amount) => set({ amount })}
        inputMode="decimal"
        autoComplete="off"
      />
      {codeField('payTo', t.payTo, t.payToHint)}
    </Stack>
  );
}
