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
