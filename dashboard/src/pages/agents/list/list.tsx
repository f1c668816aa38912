import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { Plus } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';

import { agentsQuery, memoryQuery, USE_POLL_MS, type AgentSummary } from '../../../api/agents';
import { useMay } from '../../../app/useSession';
import { buttonClass } from '../../../components/Button';
import { formatBytes } from '../../../components/bytes';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { Page } from '../../../components/Page';
import { Skeleton } from '../../../components/Skeleton';
import { Timestamp } from '../../../components/Timestamp';
import * as agents from '../../../i18n/agents';
import { useLanguage, useText } from '../../../i18n/language';
import { AgentStatus } from '../AgentStatus';
import styles from './list.module.css';

const ROW_PIXELS = 64;
const FILTERED_FROM = 6;

export function AgentListPage() {
  const t = useText(agents);
  const may = useMay();
  const { data, error, refetch } = useQuery({ ...agentsQuery, refetchInterval: USE_POLL_MS });
  const create = (
    <Link to="/agents/new" className={buttonClass('primary')}>
      <Plus size={17} aria-hidden /> {t.create}
    </Link>
  );
  const hasAgents = data !== undefined && data.agents.length > 0;
  return (
    <Page
      title={t.title}
      lead={data && t.count(data.agents.length, data.agentLimit)}
      actions={may('editor') && hasAgents && create}
      fills={hasAgents}
    >
      {error && !data && <ErrorPanel error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton />}
      {data && !hasAgents && (
        <EmptyState title={t.emptyTitle} action={may('editor') && create} command='roost agents create "My agent"'>
          {t.emptyText}
        </EmptyState>
      )}
      {hasAgents && <AgentTable all={data.agents} />}
    </Page>
  );
}

/** A virtual list: only the rows in view exist, whatever the number of agents. */
function AgentTable({ all }: { all: readonly AgentSummary[] }) {
  const t = useText(agents);
  const { data: memory } = useQuery(memoryQuery);
  const [filter, setFilter] = useState('');
  const frame = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    return all.filter((one) => `${one.name} ${one.engine} ${t.states[one.status]} ${one.agentId}`.toLowerCase().includes(wanted));
  }, [all, filter, t]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PIXELS,
    getItemKey: (index) => rows[index]!.agentId,
    overscan: 8,
  });
  return (
    <div className={styles.layout}>
      {all.length >= FILTERED_FROM && (
        <TextField label={t.filter} value={filter} onChange={setFilter} type="search" autoComplete="off" />
      )}
      <div className={styles.frame} ref={frame} tabIndex={0} role="region" aria-label={t.title}>
        <div role="table" aria-label={t.title} aria-rowcount={rows.length + 1} className={styles.table}>
          <div role="rowgroup" className={styles.head}>
            <div role="row" aria-rowindex={1} className={styles.row}>
              <span role="columnheader">{t.name}</span>
              <span role="columnheader">{t.state}</span>
              <span role="columnheader">{t.engine}</span>
              <span role="columnheader">{t.memory}</span>
              <span role="columnheader">{t.lastUsed}</span>
            </div>
          </div>
          <div role="rowgroup" className={styles.body} style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map((item) => (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 2}
                className={`${styles.row} ${styles.agent}`}
                style={{ height: item.size, transform: `translateY(${item.start}px)` }}
              >
                <AgentCells agent={rows[item.index]!} memory={memory?.get(rows[item.index]!.agentId)} />
              </div>
            ))}
          </div>
        </div>
        {rows.length === 0 && <p className={styles.none}>{t.noMatch}</p>}
      </div>
    </div>
  );
}

function AgentCells({ agent, memory }: { agent: AgentSummary; memory: number | undefined }) {
  const t = useText(agents);
  const { language } = useLanguage();
  return (
    <>
      <span role="cell" className={styles.name}>
        <Link to="/agents/$id/overview" params={{ id: agent.agentId }}>
          {agent.emoji ? `${agent.emoji} ` : ''}
          {agent.name}
        </Link>
        {agent.statusReason && <small title={agent.statusReason}>{agent.statusReason}</small>}
      </span>
      <span role="cell">
        <AgentStatus state={agent.status} />
      </span>
      <span role="cell" className={styles.engine}>
        {agent.engine} <small>{agent.agentVersion}</small>
      </span>
      <span role="cell" className={styles.when}>
        {memory === undefined ? '-' : formatBytes(memory, language)}
      </span>
      <span role="cell" className={styles.when}>
        {agent.lastUsedAt ? <Timestamp at={agent.lastUsedAt} /> : t.neverUsed}
      </span>
    </>
  );
}
