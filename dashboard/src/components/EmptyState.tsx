import type { ReactNode } from 'react';

import { CodeBlock } from './CodeBlock';
import styles from './EmptyState.module.css';

interface Props {
  title: string;
  children?: ReactNode;
  /** The one button that does the first step. */
  action?: ReactNode;
  /** The same step on the command line. */
  command?: string;
}

export function EmptyState({ title, children, action, command }: Props) {
  return (
    <section className={styles.empty}>
      <h2>{title}</h2>
      {children && <p className={styles.text}>{children}</p>}
      {action}
      {command && <CodeBlock code={command} />}
    </section>
  );
}
