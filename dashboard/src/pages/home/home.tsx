import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';

import { agentsQuery, modelsQuery, type AgentSummary } from '../../api/agents';
import { agentModelsQuery, usedModel } from '../../api/models';
import { useMay, useSession } from '../../app/useSession';
import { Button, buttonClass } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { EmptyState } from '../../components/EmptyState';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Page, Section } from '../../components/Page';
import { Skeleton } from '../../components/Skeleton';
import * as home from '../../i18n/home';
import { useText } from '../../i18n/language';
import * as startTexts from '../../i18n/start';
import { AgentStatus } from '../agents/AgentStatus';
import { GetStarted } from './GetStarted';
import { useStart } from './startState';
import { TalkCard } from './TalkCard';
import styles from './home.module.css';

const STEPS = 2; // the model and the phone
const SHOWN = 6;
const SHOWN_MODELS = 12;
const EXAMPLE = 'ROOST_MODEL_URL=https://api.openai.com/v1 ROOST_MODEL_KEY_FILE=/etc/roost/model.key make up';

export function HomePage() {
  const t = useText(home);
  const texts = useText(startTexts);
  const may = useMay();
  const session = useSession();
  const { data, error, refetch } = useQuery(agentsQuery);
  const agents = data?.agents;
  const first = agents?.find(({ status }) => status === 'running') ?? agents?.at(-1);
  const steps = useStart(session?.tenant.id ?? '');
  const isStart = first !== undefined && isStarting(steps, agents?.length ?? 0);
  const create = (
    <Link to="/agents/new" className={buttonClass('primary')}>
      {t.create}
    </Link>
  );
  const again = first && !isStart && may('editor') && <Button onPress={steps.show}>{texts.again}</Button>;
  const lead = isStart ? texts.lead : session && t.lead(session.tenant.name);
  return (
    <Page title={t.title} lead={lead} actions={again}>
      {error && !data && <ErrorPanel error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton />}
      {agents && !first && (
        <EmptyState title={t.firstTitle} action={may('editor') && create} command='roost agents create "My agent"'>
          {t.firstText}
        </EmptyState>
      )}
      {first && isStart && <GetStarted agent={first} steps={steps} />}
      {first && !isStart && (
        <>
          {may('editor') && <TalkCard agent={first} />}
          <AgentSection agents={agents ?? []} />
          <ModelSection agents={agents ?? []} />
        </>
      )}
      {agents && !first && <ModelSection agents={[]} />}
    </Page>
  );
}

/** Return whether the first steps are shown: with the first agent, until they are hidden or all skipped. */
function isStarting({ state, skipped }: ReturnType<typeof useStart>, agents: number): boolean {
  if (state === 'first') return agents === 1 && skipped.length < STEPS;
  return state === 'shown' && skipped.length < STEPS;
}

function AgentSection({ agents }: { agents: readonly AgentSummary[] }) {
  const t = useText(home);
  return (
    <Section title={t.agents} actions={<Link to="/agents">{t.all}</Link>}>
      <ul className={styles.agents}>
        {agents.slice(0, SHOWN).map((agent) => (
          <li key={agent.agentId}>
            <Link to="/agents/$id/overview" params={{ id: agent.agentId }}>
              {agent.name}
            </Link>
            <AgentStatus state={agent.status} />
            {agent.statusReason && <small>{agent.statusReason}</small>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** What the agents think with, honestly: without configuration it is a stand-in. */
function ModelSection({ agents }: { agents: readonly AgentSummary[] }) {
  const t = useText(home);
  const may = useMay();
  const shown = agents.slice(0, SHOWN);
  const found = useQueries({ queries: shown.map(({ agentId }) => agentModelsQuery(agentId)) });
  const lacking = shown.filter(({ model }, at) => found[at]?.data && usedModel(found[at].data.models, model) === null);
  const { data, error, refetch } = useQuery({ ...modelsQuery, refetchInterval: false });
  const models = (data?.data ?? []).filter((model) => model.owned_by !== 'scripted');
  return (
    <Section title={t.model}>
      {error && <ErrorPanel error={error} onRetry={refetch} />}
      {data && models.length > 0 && (
        <>
          <p>{t.models(models.length)}</p>
          <ul className={styles.models}>
            {models.slice(0, SHOWN_MODELS).map((model) => (
              <li key={model.id}>
                <code>{model.id}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      {may('editor') &&
        lacking.map(({ agentId, name }) => (
          <Link key={agentId} to="/agents/$id/overview" params={{ id: agentId }}>
            {t.giveModel(name)}
          </Link>
        ))}
      {data && models.length === 0 && (
        <>
          <p>{t.scripted}</p>
          <p>{t.connect}</p>
          <CodeBlock code={EXAMPLE} />
          <p className={styles.muted}>{t.connectKey}</p>
        </>
      )}
    </Section>
  );
}
