import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { SendHorizontal } from 'lucide-react';
import { useState, type SyntheticEvent } from 'react';

import { agentsQuery, modelsQuery, type AgentSummary } from '../../api/agents';
import { conversationWith } from '../../api/conversation';
import { useMay, useSession } from '../../app/useSession';
import { Button, buttonClass } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { EmptyState } from '../../components/EmptyState';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { Page, Section } from '../../components/Page';
import { Skeleton } from '../../components/Skeleton';
import * as home from '../../i18n/home';
import { useText } from '../../i18n/language';
import { AgentStatus } from '../agents/AgentStatus';
import styles from './home.module.css';

const SHOWN = 6;
const SHOWN_MODELS = 12;
const EXAMPLE = 'ROOST_MODEL_URL=https://api.openai.com/v1 ROOST_MODEL_KEY_FILE=/etc/roost/model.key make up';

export function HomePage() {
  const t = useText(home);
  const may = useMay();
  const session = useSession();
  const { data, error, refetch } = useQuery(agentsQuery);
  const agents = data?.agents;
  const first = agents?.find(({ status }) => status === 'running') ?? agents?.at(-1);
  const create = (
    <Link to="/agents/new" className={buttonClass('primary')}>
      {t.create}
    </Link>
  );
  return (
    <Page title={t.title} lead={session && t.lead(session.tenant.name)}>
      {error && !data && <ErrorPanel error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton />}
      {agents && !first && (
        <EmptyState title={t.firstTitle} action={may('editor') && create} command='roost agents create "My agent"'>
          {t.firstText}
        </EmptyState>
      )}
      {first && may('editor') && <FirstMessage agent={first} />}
      {agents && first && <AgentSection agents={agents} />}
      <ModelSection />
    </Page>
  );
}

function FirstMessage({ agent }: { agent: AgentSummary }) {
  const t = useText(home);
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const isRunning = agent.status === 'running';
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!text.trim() || !isRunning) return;
    void conversationWith(agent.agentId).send(text.trim());
    void navigate({ to: '/agents/$id/chat', params: { id: agent.agentId } });
  };
  return (
    <Section title={t.talkTo(agent.name)} actions={<AgentStatus state={agent.status} />}>
      <form onSubmit={send} className={styles.message}>
        <TextField label={t.message} placeholder={t.placeholder} value={text} onChange={setText} autoComplete="off" />
        <Button kind="primary" type="submit" isDisabled={!text.trim() || !isRunning}>
          <SendHorizontal size={17} aria-hidden /> {t.send}
        </Button>
      </form>
      {agent.status === 'starting' && <p className={styles.muted}>{t.startingText}</p>}
      {!isRunning && agent.status !== 'starting' && (
        <p>
          {t.downText(agent.name)}{' '}
          <Link to="/agents/$id/overview" params={{ id: agent.agentId }}>
            {t.see}
          </Link>
        </p>
      )}
    </Section>
  );
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
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** What the agents think with, honestly: without configuration it is a stand-in. */
function ModelSection() {
  const t = useText(home);
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
