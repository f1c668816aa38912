import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useState, type SyntheticEvent } from 'react';

import { sessionQuery, signIn, type Credential, type Session } from '../../api/session';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { useText } from '../../i18n/language';
import * as login from '../../i18n/login';
import styles from './login.module.css';
import { SwitchSession } from './SwitchSession';

const route = getRouteApi('/login');
let takenCode: string | null = null;

/** Return the code of a sign-in link and remove it from the address, so that the history does not hold it. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code !== null) {
    history.replaceState(history.state, '', location.pathname + location.search);
    takenCode = code;
  }
  return takenCode;
}

export function LoginPage() {
  const t = useText(login);
  const findSession = useFoundSession();
  const [code] = useState(takeCode);
  const [key, setKey] = useState('');
  const { attempt, isPending, error } = useAttempt(code !== null);
  const [isMissing, setMissing] = useState(false);
  const [present, setPresent] = useState<Session | null>(null);
  const signInByLink = useEffectEvent(() => {
    document.title = `${t.title}`;
    if (takenCode === null) return;
    takenCode = null; // it works once
    void findSession().then((session) => (session ? setPresent(session) : attempt({ code: code! })));
  });
  useEffect(() => signInByLink(), []);
  useReloadForNextLink();
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    setMissing(!key.trim());
    if (key.trim()) void attempt({ key: key.trim() });
  };
  if (present && code !== null) {
    const use = () => {
      setPresent(null);
      void attempt({ code });
    };
    return <SwitchSession session={present} onUse={use} />;
  }
  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={submit}>
        <img src="/favicon.svg" alt="" width={44} height={44} />
        <h1>{t.title}</h1>
        {error !== null && <ErrorPanel error={error} />}
        {error !== null && code !== null && !key && <p className={styles.how}>{t.usedCode}</p>}
        <TextField
          label={t.keyLabel}
          hint={t.keyHint}
          error={isMissing ? t.keyMissing : undefined}
          type="password"
          autoComplete="off"
          value={key}
          onChange={setKey}
          isDisabled={isPending}
          autoFocus
        />
        <Button kind="primary" type="submit" isDisabled={isPending}>
          {isPending ? t.working : t.signIn}
        </Button>
        <p className={styles.how}>{t.how}</p>
        <CodeBlock code="roost dashboard" />
      </form>
    </main>
  );
}

function useReloadForNextLink(): void {
  useEffect(() => {
    // Another link in the same tab changes the fragment only, which loads nothing by itself.
    const take = () => new URLSearchParams(location.hash.slice(1)).has('code') && location.reload();
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);
}

/** Sign in and keep the error of a failed attempt. */
function useAttempt(isExpected: boolean) {
  const enter = useSignIn();
  const [isPending, setPending] = useState(isExpected);
  const [error, setError] = useState<unknown>(null);
  const attempt = async (credential: Credential) => {
    setPending(true);
    setError(null);
    try {
      await enter(credential);
    } catch (problem) {
      setError(problem);
      setPending(false);
    }
  };
  return { attempt, isPending, error };
}

/**
 * Return the function that makes a session and opens the page that was asked for. It is loaded again: uploads and
 * conversations of the last session in this window are in memory, and may be another person's.
 */
function useSignIn(): (credential: Credential) => Promise<void> {
  const { next } = route.useSearch();
  return async (credential) => {
    await signIn(credential);
    location.replace(next ?? '/');
  };
}

/** Return the function that finds the session that the browser already has; null also if that cannot be told. */
function useFoundSession(): () => Promise<Session | null> {
  const queries = useQueryClient();
  return () => queries.ensureQueryData(sessionQuery).catch(() => null);
}
