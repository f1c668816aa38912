import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Page } from '../../components/Page';
import { showCurrent } from '../../components/showCurrent';
import { useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';
import styles from './storage.module.css';

const SECTIONS = [
  { to: '/storage/files', label: 'files' },
  { to: '/storage/groups', label: 'groups' },
  { to: '/storage/gateways', label: 'gateways' },
  { to: '/storage/vectors', label: 'vectors' },
  { to: '/storage/payments', label: 'payments' },
] as const;

interface Props {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A page of the storage with links to the others. */
export function StoragePage({ children, ...rest }: Props) {
  const t = useText(storage);
  return (
    <Page {...rest}>
      <nav aria-label={t.sectionsLabel} className={styles.sections} ref={showCurrent}>
        {SECTIONS.map(({ to, label }) => (
          <Link key={to} to={to} className={styles.section}>
            {t.sections[label]}
          </Link>
        ))}
      </nav>
      {children}
    </Page>
  );
}
