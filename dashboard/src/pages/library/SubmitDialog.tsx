import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import { listRefs, submitTemplate, validateTemplate } from '../../api/library';
import { Button } from '../../components/Button';
import { Checkbox } from '../../components/Checkbox';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Facts } from '../../components/Facts';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, PlainList, Row } from '../../components/Row';
import { Select } from '../../components/Select';
import { StatusBadge } from '../../components/StatusBadge';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';

/** Makes a template of a Git repository: its branches to choose from, and a check before it is stored. */
export function SubmitDialog({ onClose }: { onClose: () => void }) {
  const t = useText(library);
  const [gitUrl, setGitUrl] = useState('');
  const [ref, setRef] = useState('');
  const [path, setPath] = useState('');
  const [isPublic, setPublic] = useState(false);
  const source = { gitUrl: gitUrl.trim(), ref: ref.trim(), path: path.trim(), isPublic };
  const refs = useMutation({
    mutationFn: () => listRefs(source.gitUrl),
    onSuccess: ([first]) => setRef((now) => now || (first?.name ?? '')),
  });
  const check = useMutation({ mutationFn: () => validateTemplate(source) });
  const submit = useMutation({
    mutationFn: () => submitTemplate(source),
    onSuccess: ({ template }) => showToast(t.submitted(template.name)),
  });
  const change = (apply: (text: string) => void) => (text: string) => {
    check.reset();
    apply(text);
  };
  return (
    <FormDialog title={t.submit} action={t.submitAction} onClose={onClose} onSubmit={submit.mutateAsync} isDisabled={!source.gitUrl}>
      <TextField
        label={t.gitUrl}
        hint={t.gitUrlHint}
        value={gitUrl}
        onChange={change((text) => {
          setGitUrl(text);
          refs.reset();
        })}
        type="url"
        autoComplete="off"
        autoFocus
      />
      <RefField refs={refs.data ?? []} value={ref} onChange={change(setRef)} />
      <TextField label={t.gitPath} hint={t.gitPathHint} value={path} onChange={change(setPath)} autoComplete="off" />
      <Row>
        <Button isDisabled={!source.gitUrl || refs.isPending} onPress={() => refs.mutate()}>
          {refs.isPending ? t.loadingRefs : t.loadRefs}
        </Button>
        <Button isDisabled={!source.gitUrl || check.isPending} onPress={() => check.mutate()}>
          {check.isPending ? t.checking : t.check}
        </Button>
      </Row>
      {(refs.error ?? check.error) && <ErrorPanel error={refs.error ?? check.error} />}
      {check.data && <Checked found={check.data} />}
      <Checkbox isSelected={isPublic} onChange={setPublic}>
        {t.isPublic}
      </Checkbox>
    </FormDialog>
  );
}

interface RefProps {
  refs: Awaited<ReturnType<typeof listRefs>>;
  value: string;
  onChange: (ref: string) => void;
}

/** A branch or tag: one of those that are known, or any. */
function RefField({ refs, ...field }: RefProps) {
  const t = useText(library);
  const choices = refs.map(({ name, isTag }) => ({ id: name, label: name, description: isTag ? t.tag : t.branch }));
  return choices.some(({ id }) => id === field.value) ? (
    <Select label={t.gitRef} choices={choices} {...field} />
  ) : (
    <TextField label={t.gitRef} hint={t.gitRefHint} autoComplete="off" {...field} />
  );
}

/** What a check of a repository found. */
function Checked({ found }: { found: Awaited<ReturnType<typeof validateTemplate>> }) {
  const t = useText(library);
  const agent = found.manifest.agent as { name?: unknown } | undefined;
  return (
    <>
      <Row>
        <StatusBadge tone="ok">{t.valid}</StatusBadge>
        {typeof agent?.name === 'string' && <strong>{agent.name}</strong>}
      </Row>
      <Facts
        entries={[
          [t.files, found.files.length],
          [t.commit, <code key="commit">{found.commitSha.slice(0, 12)}</code>],
        ]}
      />
      {found.warnings.length > 0 && (
        <PlainList label={t.warnings}>
          {found.warnings.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              <Note small>
                {path}: {message}
              </Note>
            </li>
          ))}
        </PlainList>
      )}
    </>
  );
}
