import { valibotResolver } from '@hookform/resolvers/valibot';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { Controller, useForm } from 'react-hook-form';
import * as v from 'valibot';

import { enginesQuery, templatesQuery } from '../../api/agents';
import { api, body } from '../../api/client';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { Page, Section } from '../../components/Page';
import { Select } from '../../components/Select';
import { showToast } from '../../components/Toast';
import * as agents from '../../i18n/agents';
import { useText } from '../../i18n/language';
import styles from './new.module.css';

const NAME_LIMIT = 100;
interface Values {
  name: string;
  engine: string;
  template: string;
}

/** Return the command that does what the form does. */
export function createCommand({ name, engine, template }: Values): string {
  const quoted = `'${name.trim().replaceAll("'", `'\\''`)}'`;
  return [
    'roost agents create',
    quoted,
    engine && `--engine ${engine}`,
    template && `--template ${template}`,
  ]
    .filter(Boolean)
    .join(' ');
}

export function NewAgentPage() {
  const t = useText(agents);
  const navigate = useNavigate();
  const engines = useQuery(enginesQuery);
  const templates = useQuery(templatesQuery);
  const schema = useMemo(
    () =>
      v.object({
        name: v.pipe(v.string(), v.trim(), v.minLength(1, t.nameMissing), v.maxLength(NAME_LIMIT, t.nameLong)),
        engine: v.string(),
        template: v.string(),
      }),
    [t],
  );
  const form = useForm<Values>({
    resolver: valibotResolver(schema),
    defaultValues: { name: '', engine: '', template: '' },
  });
  const create = useMutation({
    mutationFn: ({ name, engine, template }: Values) =>
      body(
        api.POST('/v0/agents', {
          body: { name: name.trim(), ...(engine && { engine }), ...(template && { templateId: template }) },
        }),
      ),
    onSuccess: ({ agent }) => {
      showToast(t.created(agent.name));
      void navigate({ to: '/agents/$id/overview', params: { id: agent.agentId } });
    },
  });
  const values = form.watch();
  const engineChoices = [
    { id: '', label: t.defaultEngine },
    ...(engines.data?.engines ?? []).map(({ id, label }) => ({ id, label })),
  ];
  const templateChoices = [
    { id: '', label: t.noTemplate },
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
          label={t.engine}
          choices={engineChoices}
          value={values.engine}
          onChange={(engine) => form.setValue('engine', engine)}
        />
        <Select
          label={t.template}
          hint={t.templateHint}
          choices={templateChoices}
          value={values.template}
          onChange={(template) => form.setValue('template', template)}
        />
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
