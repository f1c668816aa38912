import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState, type SyntheticEvent } from 'react';

import { agentsQuery, enginesQuery, templatesQuery, type AgentSummary } from '../../../api/agents';
import { Button } from '../../../components/Button';
import { CodeBlock } from '../../../components/CodeBlock';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { Page, Section } from '../../../components/Page';
import { Select } from '../../../components/Select';
import { showToast } from '../../../components/Toast';
import * as agents from '../../../i18n/agents';
import { useText } from '../../../i18n/language';
import { BY_CID, createAgent, createCommand, findProblems, SNAPSHOT, type NewAgent } from './creation';
import styles from './new.module.css';
import { SnapshotFields } from './SnapshotFields';

const EMPTY: NewAgent = { name: '', engine: '', begin: '', origin: '', snapshot: '' };

export function NewAgentPage() {
  const t = useText(agents);
  const [values, setValues] = useState(EMPTY);
  return (
    <Page title={t.newTitle} lead={t.newLead}>
      <NewAgentForm values={values} onChange={(changed) => setValues({ ...values, ...changed })} />
      <Section title={t.asCommand}>
        <CodeBlock code={createCommand({ ...values, name: values.name || 'My agent' })} />
      </Section>
    </Page>
  );
}

function NewAgentForm({ values, onChange }: { values: NewAgent; onChange: (changed: Partial<NewAgent>) => void }) {
  const t = useText(agents);
  const all = useQuery(agentsQuery).data?.agents ?? [];
  const choices = useChoices();
  const create = useCreation();
  const nameInput = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const [problems, setProblems] = useState<ReturnType<typeof findProblems>>({});
  const change = (changed: Partial<NewAgent>) => {
    setProblems({});
    onChange(changed);
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const found = findProblems(values, t);
    setProblems(found);
    if (found.name) nameInput.current?.focus();
    else if (!found.snapshot) create.mutate({ values, origin: all.find(({ agentId }) => agentId === values.origin) });
  };
  const isOfSnapshot = values.begin === SNAPSHOT;
  return (
    <form className={styles.form} onSubmit={submit} noValidate>
      <TextField
        label={t.name}
        hint={t.nameHint}
        value={values.name}
        onChange={(name) => change({ name })}
        error={problems.name}
        inputRef={nameInput}
        autoComplete="off"
        autoFocus
      />
      <Select
        label={t.begin}
        hint={t.beginHint}
        choices={choices.begin}
        value={values.begin}
        onChange={(begin) => change({ begin, origin: all[0]?.agentId ?? BY_CID, snapshot: '' })}
      />
      {isOfSnapshot && (
        <SnapshotFields
          all={all}
          origin={values.origin}
          snapshot={values.snapshot}
          error={problems.snapshot}
          onChange={(origin, snapshot) => change({ origin, snapshot })}
        />
      )}
      {(!isOfSnapshot || values.origin === BY_CID) && (
        <Select label={t.engine} choices={choices.engine} value={values.engine} onChange={(engine) => change({ engine })} />
      )}
      {create.error && <ErrorPanel error={create.error} />}
      <div className={styles.actions}>
        <Button kind="primary" type="submit" isDisabled={create.isPending}>
          {create.isPending ? t.creating : t.createAction}
        </Button>
      </div>
    </form>
  );
}

function useChoices() {
  const t = useText(agents);
  const engines = useQuery(enginesQuery).data?.engines ?? [];
  const templates = useQuery(templatesQuery).data?.templates ?? [];
  return {
    engine: [{ id: '', label: t.defaultEngine }, ...engines.map(({ id, label }) => ({ id, label }))],
    begin: [
      { id: '', label: t.emptyWorkspace },
      { id: SNAPSHOT, label: t.ofSnapshot, description: t.ofSnapshotHint },
      ...templates.map(({ slug, name, description }) => ({ id: slug, label: name, description })),
    ],
  };
}

function useCreation() {
  const t = useText(agents);
  const navigate = useNavigate();
  return useMutation({
    mutationFn: ({ values, origin }: { values: NewAgent; origin: AgentSummary | undefined }) => createAgent(values, origin),
    onSuccess: ({ agent }) => {
      showToast(t.created(agent.name));
      void navigate({ to: '/agents/$id/overview', params: { id: agent.agentId } });
    },
  });
}
