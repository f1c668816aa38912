import { useQuery } from '@tanstack/react-query';

import { systemQuery, type SystemState } from '../../api/system';
import { useIsOperator } from '../../app/useSession';
import { formatBytes } from '../../components/bytes';
import { EmptyState } from '../../components/EmptyState';
import { Facts } from '../../components/Facts';
import { Page, Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note, Row } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import { Table, type Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { useLanguage, useText } from '../../i18n/language';
import * as system from '../../i18n/system';
import { SystemChecks } from './checks';
import { EngineSection } from './engines';

const NOTICES = '/third-party-notices.txt';

export function SystemPage() {
  const t = useText(system);
  if (useIsOperator()) return <OperatorPage />;
  return (
    <Page title={t.title}>
      <EmptyState title={t.notOperator} command="roost dashboard">
        {t.notOperatorText}
      </EmptyState>
    </Page>
  );
}

function OperatorPage() {
  const t = useText(system);
  const query = useQuery(systemQuery);
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={query}>
        {(state) => (
          <>
            <HealthSection state={state} />
            <SystemChecks />
            <EngineSection />
            <HostSection hosts={state.hosts} />
            <Section title={t.about}>
              <Facts
                entries={[
                  [t.version, state.software.roost],
                  [t.python, state.software.python],
                  [t.database, state.software.database],
                  [t.platform, state.software.platform],
                ]}
              />
              <p>
                <a href={NOTICES} target="_blank" rel="noopener">
                  {t.notices}
                </a>
              </p>
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function HealthSection({ state }: { state: SystemState }) {
  const t = useText(system);
  const { language } = useLanguage();
  const bytes = (size: number) => formatBytes(size, language);
  const { checks, operations, disk, memory } = state;
  const failing = Object.values(checks).filter((check) => check === 'failing').length;
  return (
    <Section
      title={t.health}
      actions={<StatusBadge tone={failing ? 'danger' : 'ok'}>{failing ? t.unhealthy(failing) : t.healthy}</StatusBadge>}
    >
      <Facts
        entries={[
          ...Object.entries(checks).map(
            ([name, check]) =>
              [
                t.parts[name] ?? name,
                <StatusBadge tone={check === 'ok' ? 'ok' : 'danger'}>{check === 'ok' ? t.partWorks : t.partFails}</StatusBadge>,
              ] as const,
          ),
          [t.work, t.workText(operations.running, operations.pending + operations.paused)],
          [t.disk, disk.total > 0 ? t.freeOf(bytes(disk.free), bytes(disk.total)) : null],
          [t.memory, t.freeOf(bytes(memory.available), bytes(memory.total))],
          [t.serverMemory, bytes(memory.server)],
        ]}
      />
    </Section>
  );
}

type Host = SystemState['hosts'][number];

function HostSection({ hosts }: { hosts: readonly Host[] }) {
  const t = useText(system);
  const columns: Column<Host>[] = [
    {
      id: 'name',
      title: t.name,
      cell: ({ name, isThis }) => (
        <Row>
          <strong translate="no">{name}</strong>
          {isThis && hosts.length > 1 && <StatusBadge tone="idle">{t.thisServer}</StatusBadge>}
        </Row>
      ),
    },
    {
      id: 'state',
      title: t.state,
      cell: ({ isRunning }) => <StatusBadge tone={isRunning ? 'ok' : 'warn'}>{isRunning ? t.running : t.stopped}</StatusBadge>,
    },
    { id: 'started', title: t.started, secondary: true, cell: ({ startedAt }) => <Timestamp at={startedAt} /> },
    { id: 'seen', title: t.seen, secondary: true, cell: ({ seenAt }) => (seenAt ? <Timestamp at={seenAt} /> : t.stoppedCleanly) },
  ];
  return (
    <Section title={t.hosts}>
      <Note>{t.hostsText}</Note>
      <Table label={t.hosts} columns={columns} rows={hosts} rowKey={({ id }) => id} />
    </Section>
  );
}
