import { useMemo, type ReactNode } from 'react';

import type { UsageCount, UsageReport } from '../../api/usage';
import type { Series } from '../../components/Chart';
import { EmptyState } from '../../components/EmptyState';
import { Facts } from '../../components/Facts';
import { Section } from '../../components/Page';
import { Table, type Column } from '../../components/Table';
import { useText } from '../../i18n/language';
import * as usage from '../../i18n/usage';
import { DayChart } from './DayChart';
import styles from './usage.module.css';
import { useFormats } from './useFormats';

interface Props {
  report: UsageReport;
  /** The first step when there is no usage. */
  action: ReactNode;
  /** The name of an agent; without it no table of agents is shown. */
  nameAgent?: (agentId: string | null) => ReactNode;
}

/** Tokens by day, model and agent. */
export function TokenSections({ report, action, nameAgent }: Props) {
  const t = useText(usage);
  const { short, exact } = useFormats();
  const days = useMemo(() => report.days.map(({ day }) => day), [report]);
  const series = useMemo(
    (): Series[] => [
      { title: t.prompt, shade: 'strong', values: report.days.map(({ promptTokens }) => promptTokens) },
      { title: t.completion, shade: 'soft', values: report.days.map(({ completionTokens }) => completionTokens) },
    ],
    [report, t],
  );
  if (report.total.requests === 0) {
    return (
      <EmptyState title={t.noTokensTitle} action={action}>
        {t.noTokensText}
      </EmptyState>
    );
  }
  return (
    <Section title={t.tokens}>
      <Facts
        entries={[
          [t.prompt, exact(report.total.promptTokens)],
          [t.completion, exact(report.total.completionTokens)],
          [t.requests, exact(report.total.requests)],
        ]}
      />
      <DayChart label={t.tokensByDay} days={days} series={series} format={short} exact={exact} />
      <CountTable title={t.models} name={t.model} rows={report.models} label={({ model }) => model} rowKey={({ model }) => model} />
      {nameAgent && (
        <CountTable
          title={t.agents}
          name={t.agent}
          rows={report.agents}
          label={({ agentId }) => nameAgent(agentId)}
          rowKey={({ agentId }) => agentId ?? ''}
        />
      )}
    </Section>
  );
}

interface CountProps<Row> {
  title: string;
  name: string;
  rows: readonly Row[];
  label: (row: Row) => ReactNode;
  rowKey: (row: Row) => string;
}

function CountTable<Row extends UsageCount>({ title, name, rows, label, rowKey }: CountProps<Row>) {
  const t = useText(usage);
  const { exact } = useFormats();
  const columns: Column<Row>[] = [
    { id: 'name', title: name, cell: (row) => <span className={styles.name}>{label(row)}</span> },
    { id: 'prompt', title: t.promptShort, align: 'end', cell: ({ promptTokens }) => exact(promptTokens) },
    { id: 'completion', title: t.completionShort, align: 'end', cell: ({ completionTokens }) => exact(completionTokens) },
    { id: 'requests', title: t.gatewayRequest, align: 'end', secondary: true, cell: ({ requests }) => exact(requests) },
  ];
  return (
    <div className={styles.counts}>
      <h3>{title}</h3>
      <Table label={title} columns={columns} rows={rows} rowKey={rowKey} />
    </div>
  );
}
