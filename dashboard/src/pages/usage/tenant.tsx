import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo, type ReactNode } from 'react';

import { agentsQuery } from '../../api/agents';
import { limitsQuery } from '../../api/storage';
import { DEFAULT_PERIOD, gatewaySeriesQuery, usageTotalsQuery, usageQuery, type Period } from '../../api/usage';
import { buttonClass } from '../../components/Button';
import type { Series } from '../../components/Chart';
import { EmptyState } from '../../components/EmptyState';
import { Facts } from '../../components/Facts';
import { Loaded } from '../../components/Loaded';
import { Page, Section } from '../../components/Page';
import { useText } from '../../i18n/language';
import * as usage from '../../i18n/usage';
import { DayChart } from './DayChart';
import { PeriodPicker } from './PeriodPicker';
import { TokenSections } from './TokenSections';
import styles from './usage.module.css';
import { useFormats } from './useFormats';

const route = getRouteApi('/shell/usage');

export function UsagePage() {
  const t = useText(usage);
  const { day } = useFormats();
  const { days: period = DEFAULT_PERIOD } = route.useSearch();
  const navigate = route.useNavigate();
  const tokens = useQuery(usageQuery(period));
  const { data: agents } = useQuery(agentsQuery);
  const names = useMemo(() => new Map(agents?.agents.map(({ agentId, name }) => [agentId, name])), [agents]);
  const nameAgent = (agentId: string | null): ReactNode => {
    if (agentId === null) return t.noAgent;
    const name = names.get(agentId);
    if (name === undefined) return agents ? t.deletedAgent(agentId) : agentId;
    return (
      <Link to="/agents/$id/usage" params={{ id: agentId }} search={{ days: period }}>
        {name}
      </Link>
    );
  };
  const action = (
    <Link to="/agents" className={buttonClass('primary')}>
      {t.toAgents}
    </Link>
  );
  return (
    <Page
      title={t.title}
      lead={tokens.data && t.lead(day(tokens.data.from), day(tokens.data.to))}
      actions={<PeriodPicker period={period} onChange={(days) => void navigate({ search: { days } })} />}
    >
      <Loaded query={tokens}>{(report) => <TokenSections report={report} action={action} nameAgent={nameAgent} />}</Loaded>
      <StorageSection />
      <GatewaySection period={period} />
    </Page>
  );
}

function StorageSection() {
  const t = useText(usage);
  const { exact, bytes } = useFormats();
  const limits = useQuery(limitsQuery);
  const totals = useQuery(usageTotalsQuery);
  const describe = ({ files, bytes: size }: { files: number; bytes: number }) => t.files(exact(files), bytes(size), files === 1);
  return (
    <Section title={t.storage}>
      <Loaded query={limits}>
        {({ stored, max_stored }) => (
          <Facts
            entries={[
              [t.storedBytes, max_stored == null ? bytes(stored) : `${bytes(stored)} ${t.ofAtMost(bytes(max_stored))}`],
              [t.publicFiles, totals.data && describe(totals.data.public)],
              [t.privateFiles, totals.data && describe(totals.data.private)],
            ]}
          />
        )}
      </Loaded>
      <p className={styles.muted}>{t.storedHint}</p>
    </Section>
  );
}

function GatewaySection({ period }: { period: Period }) {
  const t = useText(usage);
  return (
    <Section title={t.gateways}>
      <Loaded query={useQuery(gatewaySeriesQuery(period))}>
        {({ total_requests, time_periods }) =>
          total_requests > 0 ? (
            <GatewayCharts periods={time_periods} />
          ) : (
            <EmptyState
              title={t.noGatewayTitle}
              action={
                <Link to="/storage/gateways" className={buttonClass()}>
                  {t.toGateways}
                </Link>
              }
            >
              {t.noGatewayText}
            </EmptyState>
          )
        }
      </Loaded>
    </Section>
  );
}

interface GatewayPeriod {
  readonly period_start_time: string;
  readonly requests: number;
  readonly bandwidth: number;
}

function GatewayCharts({ periods }: { periods: readonly GatewayPeriod[] }) {
  const t = useText(usage);
  const { exact, short, bytes } = useFormats();
  const days = useMemo(() => periods.map((one) => one.period_start_time), [periods]);
  const requests = useMemo(
    (): Series[] => [{ title: t.gatewayRequest, shade: 'strong', values: periods.map((one) => one.requests) }],
    [periods, t],
  );
  const sent = useMemo(
    (): Series[] => [{ title: t.gatewayByte, shade: 'strong', values: periods.map((one) => one.bandwidth) }],
    [periods, t],
  );
  return (
    <div className={styles.tables}>
      <DayChart label={t.gatewayRequests} days={days} series={requests} format={short} exact={exact} />
      <DayChart label={t.gatewayBytes} days={days} series={sent} format={bytes} exact={bytes} />
    </div>
  );
}
