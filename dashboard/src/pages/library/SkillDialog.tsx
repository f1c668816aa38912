import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { deleteSkill, publishSkill, skillVersionsQuery, type Skill } from '../../api/library';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { formatBytes } from '../../components/bytes';
import { CopyButton } from '../../components/CodeBlock';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Dialog } from '../../components/Dialog';
import { Facts } from '../../components/Facts';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, PlainList } from '../../components/Row';
import { showToast } from '../../components/Toast';
import { useLanguage, useText } from '../../i18n/language';
import * as library from '../../i18n/library';
import { VerdictView } from './VerdictView';

interface Props {
  skill: Skill;
  onClose: () => void;
}

/** A skill of the library: what the check found, what it needs, its versions. */
export function SkillDialog({ skill, onClose }: Props) {
  const t = useText(library);
  const may = useMay();
  const { language } = useLanguage();
  const [step, setStep] = useState<'show' | 'delete' | 'publish'>('show');
  const query = useQuery({ ...skillVersionsQuery(skill.skillId), enabled: step === 'show' }); // none after the deletion
  const versions = query.data?.versions ?? [];
  const remove = useMutation({
    mutationFn: () => deleteSkill(skill.skillCid),
    onSuccess: () => showToast(t.skillDeleted(skill.name)),
  });
  const back = () => setStep('show');
  if (step === 'publish') return <PublishDialog skill={skill} onClose={back} />;
  if (step === 'delete') {
    return (
      <ConfirmDialog title={t.deleteSkill(skill.name)} action={t.delete} isOpen onClose={back} onConfirm={remove.mutateAsync}>
        {t.deleteText}
      </ConfirmDialog>
    );
  }
  const actions = may('editor') && (
    <>
      <Button kind="danger" onPress={() => setStep('delete')}>
        {t.delete}
      </Button>
      <Button onPress={() => setStep('publish')}>{t.publish}</Button>
    </>
  );
  return (
    <Dialog title={skill.name} isOpen onClose={onClose} actions={actions}>
      <VerdictView verdict={skill.verdict} />
      <p>{skill.description}</p>
      {skill.warnings.length > 0 && (
        <PlainList label={t.warnings}>
          {skill.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </PlainList>
      )}
      <Facts
        entries={[
          [t.version, skill.version],
          [t.size, formatBytes(skill.size, language)],
          [t.files, skill.files],
          [t.programs, skill.wants.programs.join(', ') || null],
          [t.hosts, skill.wants.hosts.join(', ') || null],
          [t.secrets, skill.envVars.map(({ name }) => name).join(', ') || null],
        ]}
      />
      <Note small>
        {t.cid} <code>{skill.skillCid}</code> <CopyButton text={skill.skillCid} label={t.copyCid} />
      </Note>
      {versions.length > 1 && (
        <Note small>
          {t.versions}: {versions.map(({ version }) => version).join(', ')}
        </Note>
      )}
    </Dialog>
  );
}

function PublishDialog({ skill, onClose }: Props) {
  const t = useText(library);
  const [changelog, setChangelog] = useState('');
  const [reason, setReason] = useState('');
  const isDangerous = skill.verdict.level === 'dangerous';
  const publish = useMutation({
    mutationFn: () => publishSkill(skill.skillId, changelog.trim(), reason.trim() || null),
    onSuccess: () => showToast(t.published(skill.name)),
  });
  return (
    <FormDialog
      title={t.publishTitle(skill.name)}
      action={t.publishAction}
      onClose={onClose}
      onSubmit={publish.mutateAsync}
      isDisabled={isDangerous && !reason.trim()}
    >
      <Note>{t.publishText}</Note>
      <TextField label={t.changelog} value={changelog} onChange={setChangelog} lines={3} autoFocus />
      {isDangerous && (
        <>
          <VerdictView verdict={skill.verdict} />
          <TextField label={t.publishReason} value={reason} onChange={setReason} lines={2} />
        </>
      )}
    </FormDialog>
  );
}
