import { Chart, type Series } from '../../components/Chart';
import { Table, type Column } from '../../components/Table';
import { useText } from '../../i18n/language';
import * as usage from '../../i18n/usage';
import styles from './usage.module.css';
import { useFormats } from './useFormats';

interface Props {
  label: string;
  days: readonly string[];
  series: readonly Series[];
  /** Short, for axes. */
  format: (value: number) => string;
  /** Exact, for tables. */
  exact: (value: number) => string;
}

/** A chart of days, and the same numbers as a table that opens. */
export function DayChart({ label, days, series, format, exact }: Props) {
  const t = useText(usage);
  const { day } = useFormats();
  const columns: Column<number>[] = [
    { id: 'day', title: t.day, cell: (index) => day(days[index]!) },
    ...series.map(
      ({ title, values }): Column<number> => ({ id: title, title, align: 'end', cell: (index) => exact(values[index]!) }),
    ),
  ];
  const newestFirst = days.map((_, index) => days.length - 1 - index);
  return (
    <div className={styles.chart}>
      <h3>{label}</h3>
      <Chart label={label} days={days} series={series} format={format} totalTitle={t.total} />
      <details>
        <summary>{t.asTable}</summary>
        <Table label={label} columns={columns} rows={newestFirst} rowKey={(index) => days[index]!} />
      </details>
    </div>
  );
}
