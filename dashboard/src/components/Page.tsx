import { useMatches } from '@tanstack/react-router';
import { CircleQuestionMark } from 'lucide-react';
import { useEffect, type ReactNode } from 'react';

import { helpAddress } from '../app/help';
import { useOpenAgent } from '../app/useOpenAgent';
import { useText } from '../i18n/language';
import * as help from '../i18n/help';
import styles from './Page.module.css';

interface Props {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Fills the window's height, for chats, logs and terminals that scroll in themselves. */
  fills?: boolean;
}

/** The frame of every page: its heading, its actions and the title of the window, with the name of an open agent. */
export function Page({ title, lead, actions, children, fills = false }: Props) {
  const name = useOpenAgent()?.name;
  useEffect(() => {
    document.title = [title, name && !title.includes(name) && name, 'Roost'].filter(Boolean).join(' - ');
  }, [title, name]);
  return (
    <div className={`${styles.page} ${fills ? styles.fills : ''}`}>
      <header className={styles.header}>
        <div className={styles.words}>
          <div className={styles.title}>
            <h1>{title}</h1>
            <HelpLink />
          </div>
          {lead && <div className={styles.lead}>{lead}</div>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Leads to the page's section in the docs, in a new tab. */
function HelpLink() {
  const t = useText(help);
  const route = useMatches({ select: (matches) => matches.at(-1)?.fullPath ?? '/' });
  return (
    <a className={styles.help} href={helpAddress(route)} target="_blank" rel="noreferrer" aria-label={t.ofPage} title={t.ofPage}>
      <CircleQuestionMark size={17} aria-hidden />
    </a>
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
