import { Link } from '@tanstack/react-router';

import type { Session } from '../../api/session';
import { Button, buttonClass } from '../../components/Button';
import { useText } from '../../i18n/language';
import * as login from '../../i18n/login';
import styles from './login.module.css';

/**
 * Asks before a link replaces the session: any site may hold a link to an account of its own, where it would read what
 * is entered.
 */
export function SwitchSession({ session, onUse }: { session: Session; onUse: () => void }) {
  const t = useText(login);
  return (
    <main className={styles.page}>
      <section className={styles.card}>
        <img src="/favicon.svg" alt="" width={44} height={44} />
        <h1>{t.againTitle}</h1>
        <p>{t.againText(session.tenant.name, session.role)}</p>
        <p className={styles.how}>{t.againHint}</p>
        <div className={styles.choices}>
          <Button onPress={onUse}>{t.useLink}</Button>
          <Link to="/" replace className={buttonClass('primary')}>
            {t.keep}
          </Link>
        </div>
      </section>
    </main>
  );
}
