import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { ExternalLink, EllipsisVertical, MessageSquare, RotateCw, Trash2 } from 'lucide-react';
import { useState, type ReactNode } from 'react';

import { agentQuery, openAgentPage, updateQuery, type AgentDetail } from '../../../api/agents';
import { api, body } from '../../../api/client';
import { ignoreEventsOf } from '../../../api/live';
import { agentModelsQuery } from '../../../api/models';
import { useMay } from '../../../app/useSession';
import { Button, buttonClass } from '../../../components/Button';
import { CodeBlock, CopyButton } from '../../../components/CodeBlock';
import { ConfirmDialog } from '../../../components/ConfirmDialog';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Menu, MenuItem } from '../../../components/Menu';
import { Page, Section } from '../../../components/Page';
import { Note } from '../../../components/Row';
import { Skeleton } from '../../../components/Skeleton';
import { Tabs } from '../../../components/Tabs';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import * as activity from '../../../i18n/activity';
import * as agents from '../../../i18n/agents';
import * as common from '../../../i18n/common';
import { useText } from '../../../i18n/language';
import { MissingModel } from '../../home/ModelCard';
import { AgentActivity } from '../../activity/AgentActivity';
import { AgentStatus } from '../AgentStatus';
import { callLines } from './callLines';
import styles from './overview.module.css';

const route = getRouteApi('/shell/agents/$id/overview');
const STARTING_POLL_MS = 1_500;

export function AgentOverviewPage() {
  const { id } = route.useParams();
  const t = useText(agents);
  const { data, error, refetch } = useQuery({
    ...agentQuery(id),
    refetchInterval: (query) => (query.state.data?.agent.status === 'starting' ? STARTING_POLL_MS : 15_000),
  });
  if (data) return <Overview detail={data} />;
  return <Page title={t.title}>{error ? <ErrorPanel error={error} onRetry={refetch} /> : <Skeleton lines={6} />}</Page>;
}

/** Says why providers do not list their models, for as long as they do not. */
function ModelProblems({ agentId }: { agentId: string }) {
  const { data } = useQuery(agentModelsQuery(agentId));
  return data?.problems?.map((problem) => <Note key={problem}>{problem}</Note>);
}

function Overview({ detail }: { detail: AgentDetail }) {
  const { agent } = detail;
  const t = useText(agents);
  const path = { params: { path: { agentId: agent.agentId } } };
  const restart = useMutation({
    mutationFn: () => body(api.POST('/v0/agents/{agentId}/restart', path)),
    onSuccess: () => showToast(t.restarted),
  });
  const open = useMutation({ mutationFn: () => openAgentPage(agent.agentId) });
  const problem = restart.error ?? open.error;
  return (
    <Page
      title={`${agent.emoji ?? ''} ${agent.name}`.trim()}
      lead={agent.description}
      actions={<Actions detail={detail} restart={restart} open={open} />}
    >
      {problem && <ErrorPanel error={problem} />}
      <ModelProblems agentId={agent.agentId} />
      <Section title={t.status}>
        <div className={styles.status}>
          <AgentStatus state={agent.status} />
          <span>
            <Timestamp at={agent.updatedAt} />
          </span>
        </div>
        <p className={styles.reason}>{agent.statusReason ?? t.stateMeaning[agent.status]}</p>
      </Section>
      <MissingModel agent={agent} />
      <Faults faults={detail.faults ?? []} />
      <MissingParts missing={detail.missing ?? []} />
      <CallAgent {...detail} />
      <EngineSection detail={detail} />
      <AgentActivity agentId={agent.agentId} />
      <Section title={t.about}>
        <dl className={styles.facts}>
          <Fact title={t.id}>
            <code>{agent.agentId}</code> <CopyButton text={agent.agentId} label={t.id} />
          </Fact>
          <Fact title={t.model}>{agent.model ?? t.defaultModel}</Fact>
          <Fact title={t.lastUsed}>{agent.lastUsedAt ? <Timestamp at={agent.lastUsedAt} /> : t.neverUsed}</Fact>
          <Fact title={t.createdAt}>
            <Timestamp at={agent.createdAt} />
          </Fact>
          {detail.processId != null && <Fact title={t.process}>{detail.processId}</Fact>}
          {detail.template && <Fact title={t.fromTemplate}>{detail.template.slug}</Fact>}
        </dl>
      </Section>
    </Page>
  );
}

function Faults({ faults }: { faults: NonNullable<AgentDetail['faults']> }) {
  const t = useText(agents);
  const w = useText(activity);
  if (faults.length === 0) return null;
  return (
    <Section title={t.faults}>
      <ul className={styles.list}>
        {faults.map((fault) => (
          <li key={fault.kind}>
            <strong>{w.work[fault.kind] ?? fault.kind}</strong> {t.failingSince} <Timestamp at={fault.failingSince} />: {fault.reason}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** What the template of an agent asks for and it does not have. */
function MissingParts({ missing }: { missing: NonNullable<AgentDetail['missing']> }) {
  const t = useText(agents);
  if (missing.length === 0) return null;
  return (
    <Section title={t.missing}>
      <p>{t.missingText}</p>
      <ul className={styles.list}>
        {missing.map((item) => (
          <li key={`${item.type} ${item.name}`}>
            <strong>{item.name}</strong> ({item.required ? t.required : t.optional}): {item.description ?? item.reason}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The agent's address, lines for programs that call it, and the token that these take from the environment. */
function CallAgent({ agent: { agentId, url } }: AgentDetail) {
  const t = useText(agents);
  const may = useMay();
  const copy = useMutation({
    mutationFn: async () => {
      const { token } = await body(api.GET('/v0/agents/{agentId}/gateway-token', { params: { path: { agentId } } }));
      try {
        await navigator.clipboard.writeText(token);
      } catch {
        return token; // shown where the browser has no clipboard (plain HTTP beyond this machine) or refuses it
      }
      showToast(t.tokenCopied);
    },
  });
  return (
    <Section title={t.call} actions={may('editor') && <Button onPress={() => copy.mutate()}>{t.copyToken}</Button>}>
      <Note>{t.callText}</Note>
      {copy.error && <ErrorPanel error={copy.error} />}
      {copy.data && <CodeBlock code={copy.data} label={t.token} />}
      <CodeBlock code={url} label={t.address} />
      <Tabs
        label={t.call}
        tabs={Object.entries(callLines(url)).map(([id, code]) => ({ id, title: id, content: <CodeBlock code={code} label={id} /> }))}
      />
    </Section>
  );
}

interface Action {
  readonly mutate: () => void;
  readonly isPending: boolean;
}

function Actions({ detail, restart, open }: { detail: AgentDetail; restart: Action; open: Action }) {
  const { agent } = detail;
  const t = useText(agents);
  const may = useMay();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [isDeleting, setDeleting] = useState(false);
  const remove = useMutation({
    mutationFn: async () => {
      const watchAgain = ignoreEventsOf(agent.agentId);
      await api.DELETE('/v0/agents/{agentId}', { params: { path: { agentId: agent.agentId } } }).catch((error) => {
        watchAgain(); // it is still there
        throw error;
      });
      showToast(t.deleted(agent.name));
      await navigate({ to: '/agents' }); // before all is loaded again, of which this page no longer exists
      queries.removeQueries({ queryKey: agentQuery(agent.agentId).queryKey });
    },
  });
  return (
    <>
      <Link to="/agents/$id/chat" params={{ id: agent.agentId }} className={buttonClass('primary')}>
        <MessageSquare size={17} aria-hidden /> {t.chat}
      </Link>
      {may('editor') && (
        <Button onPress={restart.mutate} isDisabled={restart.isPending || agent.status === 'starting'}>
          <RotateCw size={17} aria-hidden /> {t.restart}
        </Button>
      )}
      {may('owner') && (
        <Menu
          label={t.more}
          trigger={
            <Button iconOnly aria-label={t.more}>
              <EllipsisVertical size={18} aria-hidden />
            </Button>
          }
        >
          <MenuItem onAction={open.mutate} isDisabled={agent.status !== 'running'}>
            <ExternalLink size={17} aria-hidden /> {t.open}
          </MenuItem>
          <MenuItem danger onAction={() => setDeleting(true)}>
            <Trash2 size={17} aria-hidden /> {t.delete}
          </MenuItem>
        </Menu>
      )}
      <ConfirmDialog
        title={t.delete}
        action={t.delete}
        typed={agent.name}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={() => remove.mutateAsync()}
      >
        <p>{t.deleteText}</p>
      </ConfirmDialog>
    </>
  );
}

function EngineSection({ detail }: { detail: AgentDetail }) {
  const { agent } = detail;
  const t = useText(agents);
  const c = useText(common);
  const may = useMay();
  const check = useQuery(updateQuery(agent.agentId));
  const update = useMutation({
    mutationFn: () => body(api.POST('/v0/agents/{agentId}/update', { params: { path: { agentId: agent.agentId } }, body: null })),
    onSuccess: ({ newVersion }) => showToast(t.updated(newVersion)),
  });
  const isNewer = check.data?.updateAvailable === true;
  return (
    <Section
      title={t.updateTitle}
      actions={
        isNewer &&
        may('editor') && (
          <Button kind="primary" onPress={() => update.mutate()} isDisabled={update.isPending}>
            {update.isPending ? t.updating : t.update}
          </Button>
        )
      }
    >
      <p>
        {agent.engine} {agent.agentVersion}
      </p>
      {check.isPending && <p className={styles.muted}>{c.loading} ...</p>}
      {check.data && (
        <p className={styles.muted}>
          {isNewer ? t.updateAvailable(check.data.latestVersion) : t.upToDate(check.data.currentVersion)}
        </p>
      )}
      {check.error && <ErrorPanel error={check.error} onRetry={check.refetch} />}
      {update.error && <ErrorPanel error={update.error} />}
      {update.data && !update.data.success && <CodeBlock code={update.data.output} />}
    </Section>
  );
}

function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}
