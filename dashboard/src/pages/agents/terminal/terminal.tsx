import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Play } from 'lucide-react';
import { useEffect, useState } from 'react';

import { agentQuery } from '../../../api/agents';
import { api, body } from '../../../api/client';
import type { TerminalState } from '../../../api/terminal';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Page } from '../../../components/Page';
import { Skeleton } from '../../../components/Skeleton';
import { useText } from '../../../i18n/language';
import * as terminal from '../../../i18n/terminal';
import { TerminalView } from './TerminalView';

const route = getRouteApi('/shell/agents/$id/terminal');
const STARTING_POLL_MS = 1_500;

export function AgentTerminalPage() {
  const { id } = route.useParams();
  const t = useText(terminal);
  if (useMay()('editor')) return <AgentTerminal key={id} agentId={id} />;
  return (
    <Page title={t.title}>
      <EmptyState title={t.viewerTitle}>{t.viewerText}</EmptyState>
    </Page>
  );
}

/** The terminal, or why there is none. An open one stays whatever happens to the agent's gateway. */
function AgentTerminal({ agentId }: { agentId: string }) {
  const t = useText(terminal);
  const [state, setState] = useState<TerminalState['kind']>('connecting');
  const [run, setRun] = useState(0);
  const { data, error, refetch } = useQuery({
    ...agentQuery(agentId),
    refetchInterval: (query) => (query.state.data?.agent.status === 'starting' ? STARTING_POLL_MS : false),
  });
  useEffect(() => {
    if (state === 'refused' || state === 'retrying') void refetch();
  }, [state, refetch]);
  const again = () => {
    setState('connecting');
    setRun(run + 1);
  };
  const status = data?.agent.status;
  const isOpen = state === 'open' || state === 'exited';
  if (status !== undefined && (isOpen || (status !== 'not_running' && status !== 'starting'))) {
    return <TerminalView key={run} agentId={agentId} onState={setState} onAgain={again} />;
  }
  return (
    <Page title={t.title}>
      {status === undefined && (error ? <ErrorPanel error={error} onRetry={refetch} /> : <Skeleton />)}
      {status === 'starting' && (
        <>
          <p role="status">{t.starting}</p>
          <Skeleton />
        </>
      )}
      {status === 'not_running' && <StoppedAgent agentId={agentId} />}
    </Page>
  );
}

function StoppedAgent({ agentId }: { agentId: string }) {
  const t = useText(terminal);
  const start = useMutation({ mutationFn: () => body(api.POST('/v0/agents/{agentId}/restart', { params: { path: { agentId } } })) });
  const button = (
    <Button kind="primary" isDisabled={start.isPending} onPress={() => start.mutate()}>
      <Play size={17} aria-hidden /> {t.start}
    </Button>
  );
  return (
    <>
      {start.error && <ErrorPanel error={start.error} />}
      <EmptyState title={t.stoppedTitle} action={button} command={`roost agents restart ${agentId}`}>
        {t.stoppedText}
      </EmptyState>
    </>
  );
}
