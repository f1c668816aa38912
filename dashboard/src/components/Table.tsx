import type { ReactNode } from 'react';

import styles from './Table.module.css';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  readonly align?: 'end';
  /** Left out on phones. */
  readonly secondary?: boolean;
}

interface Props<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
}

/** A table of up to some hundred rows; it scrolls sideways in itself. Longer lists are virtual, as pages/agents/list. */
export function Table<Row>({ label, columns, rows, rowKey }: Props<Row>) {
  const cellClass = (column: Column<Row>) =>
    `${column.align === 'end' ? styles.end : ''} ${column.secondary ? styles.secondary : ''}`;
  return (
    <div className={styles.frame} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.id} scope="col" className={cellClass(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.id} className={cellClass(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
