import { Link, useRouter } from '@tanstack/react-router';

import { buttonClass } from '../components/Button';
import { ErrorPanel } from '../components/ErrorPanel';
import { Page } from '../components/Page';
import * as common from '../i18n/common';
import { useText } from '../i18n/language';

/** Shown in place of a page that failed. */
export function PageProblem({ error, reset }: { error: unknown; reset: () => void }) {
  const router = useRouter();
  return (
    <Page title="Roost">
      <ErrorPanel
        error={error}
        onRetry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </Page>
  );
}

/** Shown in place of each page of an agent that does not exist, or is not the caller's. */
export function AgentNotFound({ id }: { id: string }) {
  const t = useText(common);
  return (
    <Page title={t.noAgent} lead={t.noAgentText(id)}>
      <p>
        <Link to="/agents" className={buttonClass()}>
          {t.toAgents}
        </Link>
      </p>
    </Page>
  );
}

export function PageNotFound() {
  const t = useText(common);
  return (
    <Page title="404" lead={t.notFound}>
      <p>
        <Link to="/" className={buttonClass()}>
          {t.toStart}
        </Link>
      </p>
    </Page>
  );
}
