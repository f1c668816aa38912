import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState, type SyntheticEvent } from 'react';

import { agentQuery, changeProfile, type Agent } from '../../../api/agents';
import { agentModelsQuery } from '../../../api/models';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { LeaveGuard } from '../../../components/LeaveGuard';
import { Page } from '../../../components/Page';
import { Loaded } from '../../../components/Loaded';
import { Select } from '../../../components/Select';
import { showToast } from '../../../components/Toast';
import * as settings from '../../../i18n/agentSettings';
import { useText } from '../../../i18n/language';
import { MissingModel } from '../../home/ModelCard';
import styles from '../new/new.module.css';

const TEXTS = ['name', 'description', 'vibe', 'emoji', 'model'] as const;
type Draft = Record<(typeof TEXTS)[number], string>;

const route = getRouteApi('/shell/agents/$id/settings');

/** The agent's profile: its name, what it is for, and its model. */
export function AgentSettingsPage() {
  const t = useText(settings);
  const query = useQuery(agentQuery(route.useParams().id));
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={query}>
        {({ agent }) => (
          <>
            <ProfileForm key={agent.agentId} agent={agent} />
            <MissingModel agent={agent} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function ProfileForm({ agent }: { agent: Agent }) {
  const t = useText(settings);
  const canChange = useMay()('editor');
  const queries = useQueryClient();
  const saved = draftOf(agent);
  const [edits, setEdits] = useState<Partial<Draft>>({});
  const draft = { ...saved, ...edits };
  const changed = Object.fromEntries(
    TEXTS.filter((name) => name in edits && draft[name].trim() !== saved[name].trim()).map((name) => [
      name,
      draft[name].trim() || null,
    ]),
  );
  const isChanged = Object.keys(changed).length > 0;
  const save = useMutation({
    mutationFn: () => changeProfile(agent.agentId, changed),
    onSuccess: async () => {
      await queries.refetchQueries({ queryKey: agentQuery(agent.agentId).queryKey, exact: true });
      setEdits({});
      showToast(t.saved);
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    save.mutate();
  };
  const field = (name: keyof Draft) => ({
    label: t[name],
    value: draft[name],
    onChange: (value: string) => setEdits((before) => ({ ...before, [name]: value })),
    isDisabled: !canChange,
    autoComplete: 'off',
  });
  return (
    <form className={styles.form} onSubmit={submit} noValidate>
      <LeaveGuard isChanged={isChanged && !save.isPending} />
      <TextField {...field('name')} error={draft.name.trim() ? undefined : t.nameMissing} isRequired />
      <TextField {...field('description')} hint={t.descriptionHint} lines={3} />
      <TextField {...field('vibe')} hint={t.vibeHint} />
      <TextField {...field('emoji')} />
      <Select {...field('model')} hint={t.modelHint} choices={useModelChoices(agent)} />
      {save.error && <ErrorPanel error={save.error} />}
      {canChange && (
        <div className={styles.actions}>
          <Button kind="primary" type="submit" isDisabled={save.isPending || !draft.name.trim() || !isChanged}>
            {save.isPending ? t.saving : t.save}
          </Button>
        </div>
      )}
    </form>
  );
}

const draftOf = (agent: Agent) => Object.fromEntries(TEXTS.map((name) => [name, agent[name] ?? ''])) as Draft;

/** The models that the agent is offered, and the chosen one even if no provider lists it now. */
function useModelChoices({ agentId, model }: Agent) {
  const t = useText(settings);
  const offered = (useQuery(agentModelsQuery(agentId)).data?.models ?? []).map(({ id }) => id);
  const ids = model && !offered.includes(model) ? [model, ...offered] : offered;
  return [{ id: '', label: t.firstModel }, ...ids.map((id) => ({ id, label: id }))];
}
