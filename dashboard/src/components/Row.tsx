import type { ReactNode } from 'react';

import styles from './Row.module.css';

/** Buttons and words in a row that wraps. */
export function Row({ children, end = false }: { children: ReactNode; end?: boolean }) {
  return <div className={end ? styles.end : styles.row}>{children}</div>;
}

/** Blocks below each other. */
export function Stack({ children }: { children: ReactNode }) {
  return <div className={styles.stack}>{children}</div>;
}

/** Fields side by side, as far as they fit. */
export function Fields({ children }: { children: ReactNode }) {
  return <div className={styles.fields}>{children}</div>;
}

/** Words that support others. */
export function Note({ children, small = false }: { children: ReactNode; small?: boolean }) {
  return <p className={small ? styles.small : styles.muted}>{children}</p>;
}

/** A list without bullets. */
export function PlainList({ children, label }: { children: ReactNode; label?: string }) {
  return (
    <ul className={styles.plain} aria-label={label}>
      {children}
    </ul>
  );
}
