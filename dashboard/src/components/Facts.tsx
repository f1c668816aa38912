import type { ReactNode } from 'react';

import styles from './Facts.module.css';

/** Titles and values side by side; entries whose value is null are left out. */
export function Facts({ entries }: { entries: readonly (readonly [title: string, value: ReactNode])[] }) {
  return (
    <dl className={styles.facts}>
      {entries
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([title, value]) => (
          <div key={title} className={styles.fact}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
