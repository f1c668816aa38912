import styles from './StatusBadge.module.css';

export type Tone = 'ok' | 'busy' | 'warn' | 'danger' | 'idle';

/** A state in words; the colour only supports them. */
export function StatusBadge({ tone, children }: { tone: Tone; children: string }) {
  return <span className={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}
