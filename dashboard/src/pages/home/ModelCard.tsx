import { useMutation, useQuery } from '@tanstack/react-query';
import { Check, RefreshCw } from 'lucide-react';
import { useState, type SyntheticEvent } from 'react';

import { secretsQuery } from '../../api/access';
import type { AgentSummary } from '../../api/agents';
import {
  agentModelsQuery,
  connectModelServer,
  connectProvider,
  modelProvidersQuery,
  modelServersQuery,
  usedModel,
} from '../../api/models';
import { detectProvider } from '../../api/providers';
import type { components } from '../../api/schema';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { Section } from '../../components/Page';
import { Note } from '../../components/Row';
import { Select } from '../../components/Select';
import { Skeleton } from '../../components/Skeleton';
import { showToast } from '../../components/Toast';
import * as start from '../../i18n/start';
import { useText } from '../../i18n/language';
import styles from './home.module.css';

type ModelServer = components['schemas']['ModelServerRecord'];

interface Props {
  agentId: string;
  /** The model that the agent uses; null for the stand-in. */
  model: string | null;
  onSkip?: () => void;
}

/** The card for an agent that has no model, for those who may give it one. */
export function MissingModel({ agent }: { agent: AgentSummary }) {
  const may = useMay();
  const models = useQuery(agentModelsQuery(agent.agentId)).data?.models;
  const isMissing = models !== undefined && usedModel(models, agent.model) === null;
  return isMissing && may('editor') && <ModelCard agentId={agent.agentId} model={null} />;
}

/** Gives the agent a language model: of a server on this machine, or by the key of a provider. */
export function ModelCard({ agentId, model, onSkip }: Props) {
  const t = useText(start);
  const may = useMay();
  if (model !== null) {
    return (
      <Section title={t.modelDone} actions={<Check className={styles.done} size={18} aria-hidden />}>
        <p>
          {t.uses} <code>{model}</code>
        </p>
      </Section>
    );
  }
  const skip = onSkip && (
    <div className={styles.skip}>
      <Button kind="quiet" onPress={onSkip}>
        {t.later}
      </Button>
    </div>
  );
  return (
    <Section title={t.modelTitle} actions={skip}>
      <Note>{t.standIn}</Note>
      {may('owner') && <ServerList agentId={agentId} />}
      <KeyForm agentId={agentId} />
    </Section>
  );
}

function ServerList({ agentId }: { agentId: string }) {
  const t = useText(start);
  const { data, error, refetch, isFetching } = useQuery(modelServersQuery);
  if (data && !data.available) return null;
  return (
    <div className={styles.part}>
      <div className={styles.groupHead}>
        <h3>{t.onMachine}</h3>
        <div className={styles.skip}>
          <Button kind="quiet" iconOnly aria-label={t.lookAgain} isDisabled={isFetching} onPress={() => void refetch()}>
            <RefreshCw size={16} aria-hidden />
          </Button>
        </div>
      </div>
      {error && <ErrorPanel error={error} onRetry={refetch} />}
      {!data && !error && (
        <>
          <span className="visually-hidden">{t.searching}</span>
          <Skeleton />
        </>
      )}
      {data?.servers.length === 0 && <Note>{t.none}</Note>}
      {data?.servers.map((server) => (
        <ServerItem key={server.provider} agentId={agentId} server={server} />
      ))}
    </div>
  );
}

function ServerItem({ agentId, server }: { agentId: string; server: ModelServer }) {
  const t = useText(start);
  const [chosen, setChosen] = useState('');
  const model = server.models.includes(chosen) ? chosen : (server.models[0] ?? '');
  const use = useMutation({
    mutationFn: () => connectModelServer(agentId, server.provider, model),
    onSuccess: (used) => showToast(t.connected(used.model)),
  });
  return (
    <div className={styles.group}>
      <p>
        <strong>{server.label}</strong> <code className={styles.muted}>{server.baseUrl}</code>
      </p>
      {server.models.length === 0 ? (
        <Note>{t.noModels(server.label)}</Note>
      ) : (
        <div className={styles.choice}>
          <Select
            label={t.modelOf(server.label)}
            value={model}
            onChange={setChosen}
            choices={server.models.map((one) => ({ id: one, label: one }))}
          />
          <Button kind="primary" isDisabled={use.isPending} onPress={() => use.mutate()}>
            {use.isPending ? t.using : t.use}
          </Button>
        </div>
      )}
      {use.error && <ErrorPanel error={use.error} />}
    </div>
  );
}

function KeyForm({ agentId }: { agentId: string }) {
  const t = useText(start);
  const [key, setKey] = useState('');
  const [chosen, setChosen] = useState<string | null>(null);
  const providers = useQuery(modelProvidersQuery).data?.providers ?? [];
  const found = chosen ? providers.find(({ id }) => id === chosen) : detectProvider(key.trim(), providers);
  const provider = found?.id;
  const secret = found?.secret;
  const present = useQuery(secretsQuery).data?.secrets.find(({ name }) => name === secret);
  const others = present?.agents.filter((agent) => agent.agentId !== agentId) ?? [];
  const [isAsking, setAsking] = useState(false);
  const connect = useMutation({
    mutationFn: (given: string) =>
      connectProvider(
        agentId,
        given,
        key.trim(),
        others.map((other) => other.agentId),
      ),
    onSuccess: () => {
      setKey('');
      showToast(t.connectedProvider);
    },
  });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!provider || !key.trim()) return;
    if (others.length > 0) setAsking(true);
    else connect.mutate(provider);
  };
  return (
    <form className={styles.part} onSubmit={submit}>
      <h3>{t.byKey}</h3>
      <TextField label={t.key} hint={t.keyHint} type="password" value={key} onChange={setKey} autoComplete="off" />
      <div className={styles.choice}>
        <Select
          label={t.provider}
          value={provider ?? ''}
          onChange={(one) => setChosen(one || null)}
          choices={[{ id: '', label: t.choose }, ...providers.map(({ id, label }) => ({ id, label }))]}
        />
        <Button kind="primary" type="submit" isDisabled={!provider || !key.trim() || connect.isPending}>
          {connect.isPending ? t.using : t.connect}
        </Button>
      </div>
      {present && key && <Note small>{t.replaces(present.name)}</Note>}
      {connect.error && !isAsking && <ErrorPanel error={connect.error} />}
      {provider && (
        <ConfirmDialog
          title={t.replaceTitle}
          action={t.connect}
          isOpen={isAsking}
          onClose={() => setAsking(false)}
          onConfirm={() => connect.mutateAsync(provider)}
        >
          {t.replaceText(secret ?? '', others.map(({ name }) => name).join(', '))}
        </ConfirmDialog>
      )}
    </form>
  );
}
