import { valibotResolver } from '@hookform/resolvers/valibot';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { Controller, useForm } from 'react-hook-form';
import * as v from 'valibot';

import { agentsQuery, enginesQuery, templatesQuery } from '../../api/agents';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { Page, Section } from '../../components/Page';
import { Select } from '../../components/Select';
import { showToast } from '../../components/Toast';
import * as agents from '../../i18n/agents';
import { useText } from '../../i18n/language';
import { BY_CID, createAgent, createCommand, SNAPSHOT, type NewAgent } from './creation';
import styles from './new.module.css';
import { SnapshotFields } from './SnapshotFields';

const NAME_LIMIT = 100;
export function NewAgentPage() {
  const t = useText(agents);
  const navigate = useNavigate();
  const engines = useQuery(enginesQuery);
  const templates = useQuery(templatesQuery);
  const all = useQuery(agentsQuery).data?.agents ?? [];
  const schema = useMemo(
    () =>
      v.pipe(
        v.object({
          name: v.pipe(v.string(), v.trim(), v.minLength(1, t.nameMissing), v.maxLength(NAME_LIMIT, t.nameLong)),
          engine: v.string(),
          begin: v.string(),
          origin: v.string(),
          snapshot: v.string(),
        }),
        v.forward(
          v.check(
            ({ begin, origin, snapshot }) => begin !== SNAPSHOT || origin !== BY_CID || snapshot.trim() !== '',
            t.cidMissing,
          ),
          ['snapshot'],
        ),
      ),
    [t],
  );
  const form = useForm<NewAgent>({
    resolver: valibotResolver(schema),
    defaultValues: { name: '', engine: '', begin: '', origin: '', snapshot: '' },
  });
  const create = useMutation({
    mutationFn: (given: NewAgent) =>
      createAgent(
        given,
        all.find(({ agentId }) => agentId === given.origin),
      ),
    onSuccess: ({ agent }) => {
      showToast(t.created(agent.name));
      void navigate({ to: '/agents/$id/overview', params: { id: agent.agentId } });
    },
  });
  const values = form.watch();
  const isOfSnapshot = values.begin === SNAPSHOT;
  const engineChoices = [
    { id: '', label: t.defaultEngine },
    ...(engines.data?.engines ?? []).map(({ id, label }) => ({ id, label })),
  ];
  const choices = [
    { id: '', label: t.emptyWorkspace },
    { id: SNAPSHOT, label: t.ofSnapshot, description: t.ofSnapshotHint },
    ...(templates.data?.templates ?? []).map(({ slug, name, description }) => ({ id: slug, label: name, description })),
  ];
  return (
    <Page title={t.newTitle} lead={t.newLead}>
      <form className={styles.form} onSubmit={form.handleSubmit((given) => create.mutate(given))} noValidate>
        <Controller
          control={form.control}
          name="name"
          render={({ field: { ref, ...field }, fieldState }) => (
            <TextField
              {...field}
              inputRef={ref}
              label={t.name}
              hint={t.nameHint}
              error={fieldState.error?.message}
              autoComplete="off"
              autoFocus
            />
          )}
        />
        <Select
          label={t.begin}
          hint={t.beginHint}
          choices={choices}
          value={values.begin}
          onChange={(begin) => form.reset({ ...values, begin, origin: all[0]?.agentId ?? BY_CID, snapshot: '' })}
        />
        {isOfSnapshot && (
          <SnapshotFields
            all={all}
            origin={values.origin}
            snapshot={values.snapshot}
            error={form.formState.errors.snapshot?.message}
            onChange={(origin, snapshot) => {
              form.clearErrors('snapshot');
              form.setValue('origin', origin);
              form.setValue('snapshot', snapshot);
            }}
          />
        )}
        {(!isOfSnapshot || values.origin === BY_CID) && (
          <Select
            label={t.engine}
            choices={engineChoices}
            value={values.engine}
            onChange={(engine) => form.setValue('engine', engine)}
          />
        )}
        {create.error && <ErrorPanel error={create.error} />}
        <div className={styles.actions}>
          <Button kind="primary" type="submit" isDisabled={create.isPending}>
            {create.isPending ? t.creating : t.createAction}
          </Button>
        </div>
      </form>
      <Section title={t.asCommand}>
        <CodeBlock code={createCommand({ ...values, name: values.name || 'My agent' })} />
      </Section>
    </Page>
  );
}
