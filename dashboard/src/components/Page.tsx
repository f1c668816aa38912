import { useEffect, type ReactNode } from 'react';

import styles from './Page.module.css';

interface Props {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Fills the window's height, for chats, logs and terminals that scroll in themselves. */
  fills?: boolean;
}

/** The frame of every page: its heading, its actions and the title of the window. */
export function Page({ title, lead, actions, children, fills = false }: Props) {
  useEffect(() => {
    document.title = `${title} - Roost`;
  }, [title]);
  return (
    <div className={`${styles.page} ${fills ? styles.fills : ''}`}>
      <header className={styles.header}>
        <div className={styles.words}>
          <h1>{title}</h1>
          {lead && <div className={styles.lead}>{lead}</div>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A titled group of a page. */
export function Section({ title, children, actions }: { title: string; children: ReactNode; actions?: ReactNode }) {
  return (
    <section className={styles.section}>
      <div className={styles.sectionHeader}>
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}
