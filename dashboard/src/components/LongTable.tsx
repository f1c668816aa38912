import { useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';

import { cellClass, TableHead, type TableProps } from './Table';
import styles from './Table.module.css';

const ROW_PIXELS = 49; // until a row was measured
const AHEAD = 30;

interface Props<Row> extends TableProps<Row> {
  /** Called when the last rows come near; it may be called again before they are there. */
  onEnd: () => void;
}

/** A table of any length, which scrolls with the page: only the rows in view exist. */
export function LongTable<Row>({ label, columns, rows, rowKey, onEnd }: Props<Row>) {
  const frame = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const body = frame.current!.querySelector('tbody')!;
    const page = scroller()!;
    setOffset(body.getBoundingClientRect().top - page.getBoundingClientRect().top + page.scrollTop);
  }, []);
  // A new function would make the virtualizer measure all rows again, at each step of scrolling.
  const getItemKey = useCallback((index: number) => rowKey(rows[index]!), [rows, rowKey]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: scroller,
    estimateSize: () => ROW_PIXELS,
    getItemKey,
    overscan: 10,
    scrollMargin: offset,
  });
  const items = virtual.getVirtualItems();
  const above = (items[0]?.start ?? offset) - offset;
  const below = virtual.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  const isNearEnd = (items.at(-1)?.index ?? 0) >= rows.length - AHEAD;
  useEffect(() => {
    if (isNearEnd) onEnd();
  }, [isNearEnd, rows.length, onEnd]);
  return (
    <div className={styles.frame} role="region" aria-label={label} tabIndex={0} ref={frame}>
      <table className={styles.table} aria-rowcount={rows.length + 1}>
        <TableHead columns={columns} />
        <tbody>
          {above > 0 && <Gap height={above} />}
          {items.map(({ index, key }) => (
            <tr key={key} data-index={index} aria-rowindex={index + 2} ref={virtual.measureElement}>
              {columns.map((column) => (
                <td key={column.id} className={cellClass(column)}>
                  {column.cell(rows[index]!)}
                </td>
              ))}
            </tr>
          ))}
          {below > 0 && <Gap height={below} />}
        </tbody>
      </table>
    </div>
  );
}

/** The element that scrolls all pages. */
const scroller = () => document.getElementById('content');

function Gap({ height }: { height: number }) {
  return <tr aria-hidden style={{ height }} className={styles.gap} />;
}
