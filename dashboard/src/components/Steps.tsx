import type { ReactNode } from 'react';

import styles from './Steps.module.css';

/** Numbered steps of something that is done once. */
export function Steps({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ol className={styles.steps} aria-label={label}>
      {children}
    </ol>
  );
}

interface Props {
  title: ReactNode;
  isDone?: boolean;
  /** What is entered or shown in this step. */
  children?: ReactNode;
}

export function Step({ title, isDone = false, children }: Props) {
  return (
    <li className={`${styles.step} ${isDone ? styles.done : ''}`}>
      <div className={styles.body}>
        <p className={styles.title}>{title}</p>
        {children}
      </div>
    </li>
  );
}
