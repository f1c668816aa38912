import type { ReactNode } from 'react';

import styles from './ItemList.module.css';

/** A list of things with actions, for what is read one by one: tasks, snapshots, devices. */
export function ItemList({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul className={styles.list} aria-label={label}>
      {children}
    </ul>
  );
}

interface Props {
  title: ReactNode;
  badge?: ReactNode;
  /** One line about it, muted. */
  facts?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
}

export function Item({ title, badge, facts, actions, children }: Props) {
  return (
    <li className={styles.item}>
      <div className={styles.words}>
        <div className={styles.head}>
          <strong className={styles.title}>{title}</strong>
          {badge}
        </div>
        {facts && <div className={styles.facts}>{facts}</div>}
      </div>
      {actions && <div className={styles.actions}>{actions}</div>}
      {children && <div className={styles.details}>{children}</div>}
    </li>
  );
}
