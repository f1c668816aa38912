import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { flushSync } from 'react-dom';

import { attachCids, deleteInstruction, detachCid, instructionCidsQuery, type Instruction } from '../../api/payments';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { CopyButton } from '../../components/CodeBlock';
import { ConfirmButton } from '../../components/ConfirmButton';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Note, PlainList, Row } from '../../components/Row';
import { showToast } from '../../components/Toast';
import { useLanguage, useText } from '../../i18n/language';
import * as payments from '../../i18n/payments';
import * as reach from '../../i18n/reach';
import { describeAmount, networkName, shorten } from './amounts';
import { InstructionDialog } from './InstructionDialog';

type Open = 'change' | 'delete' | 'attach' | null;

/** A payment instruction with its prices and the files that it sells. */
export function InstructionSection({ instruction }: { instruction: Instruction }) {
  const t = useText(payments);
  const may = useMay();
  const { language } = useLanguage();
  const [open, setOpen] = useState<Open>(null);
  const [isGone, setGone] = useState(false);
  if (isGone) return null;
  const close = () => setOpen(null);
  return (
    <Section
      title={instruction.name}
      actions={
        may('editor') && (
          <Row>
            <Button onPress={() => setOpen('attach')}>{t.attach}</Button>
            <Button aria-label={t.changeTitle(instruction.name)} onPress={() => setOpen('change')}>
              {t.change}
            </Button>
            <Button aria-label={t.deleteTitle(instruction.name)} onPress={() => setOpen('delete')}>
              {t.delete}
            </Button>
          </Row>
        )
      }
    >
      {instruction.description && <p>{instruction.description}</p>}
      <PlainList label={t.instructions}>
        {instruction.payment_requirements.map((one, at) => (
          <li key={at}>
            <Row>
              <strong>{t.price(describeAmount(one, t.units, language), networkName(one.network))}</strong>
              <span>{t.to}</span>
              <code title={one.pay_to}>{shorten(one.pay_to)}</code>
              {one.description && <span>{one.description}</span>}
            </Row>
          </li>
        ))}
      </PlainList>
      <SoldFiles instruction={instruction} />
      {open === 'change' && <InstructionDialog instruction={instruction} onClose={close} />}
      {open === 'attach' && <AttachDialog instruction={instruction} onClose={close} />}
      {open === 'delete' && <DeleteDialog instruction={instruction} onClose={close} onDeleted={() => setGone(true)} />}
    </Section>
  );
}

function SoldFiles({ instruction }: { instruction: Instruction }) {
  const t = useText(payments);
  const r = useText(reach);
  const may = useMay();
  const query = useInfiniteQuery(instructionCidsQuery(instruction.id));
  const detach = useMutation({ mutationFn: (cid: string) => detachCid(instruction.id, cid) });
  return (
    <>
      <h3>{t.files}</h3>
      <Loaded query={query}>
        {({ pages }) => {
          const cids = pages.flatMap((page) => page.cids);
          if (cids.length === 0) return <Note>{t.noFiles}</Note>;
          return (
            <PlainList label={t.files}>
              {cids.map((cid) => (
                <li key={cid}>
                  <Row>
                    <code title={cid}>{shorten(cid)}</code>
                    <CopyButton text={cid} label={t.copyCid} />
                    {may('editor') && (
                      <ConfirmButton action={t.detach} title={t.detachLabel(cid)} onConfirm={() => detach.mutateAsync(cid)}>
                        {r.unsold}
                      </ConfirmButton>
                    )}
                  </Row>
                </li>
              ))}
            </PlainList>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}

function AttachDialog({ instruction, onClose }: { instruction: Instruction; onClose: () => void }) {
  const t = useText(payments);
  const r = useText(reach);
  const [text, setText] = useState('');
  const cids = text.split(/[\s,]+/).filter(Boolean);
  const attach = useMutation({
    mutationFn: () => attachCids(instruction.id, cids),
    onSuccess: () => showToast(t.attached(cids.length)),
  });
  return (
    <FormDialog
      title={t.attachTitle(instruction.name)}
      action={t.attachAction}
      onClose={onClose}
      onSubmit={attach.mutateAsync}
      isDisabled={cids.length === 0}
      question={r.sells(cids.length)}
    >
      <TextField label={t.cids} hint={t.cidsHint} value={text} onChange={setText} lines={4} monospace autoFocus />
    </FormDialog>
  );
}

interface DeleteProps {
  instruction: Instruction;
  onClose: () => void;
  onDeleted: () => void;
}

function DeleteDialog({ instruction, onClose, onDeleted }: DeleteProps) {
  const t = useText(payments);
  const { data } = useInfiniteQuery(instructionCidsQuery(instruction.id));
  const isSelling = (data?.pages[0]?.cids.length ?? 0) > 0;
  const remove = useMutation({
    mutationFn: async () => {
      await deleteInstruction(instruction.id);
      flushSync(onDeleted); // before all is loaded again, of which its files no longer exist
    },
    onSuccess: () => showToast(t.deleted(instruction.name)),
  });
  return (
    <ConfirmDialog title={t.deleteTitle(instruction.name)} action={t.delete} isOpen onClose={onClose} onConfirm={remove.mutateAsync}>
      <p>{isSelling ? t.deleteBlocked : t.deleteText}</p>
    </ConfirmDialog>
  );
}
