import { useQuery } from '@tanstack/react-query';
import { RotateCw } from 'lucide-react';

import { checksQuery, type Check } from '../../api/system';
import { Button } from '../../components/Button';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Item, ItemList } from '../../components/ItemList';
import { Section } from '../../components/Page';
import { Note } from '../../components/Row';
import { StatusBadge, type Tone } from '../../components/StatusBadge';
import { useText } from '../../i18n/language';
import * as system from '../../i18n/system';
import styles from './system.module.css';

const TONES: Record<Check['status'], Tone> = { ok: 'ok', no: 'warn', fail: 'danger' };

/** The checks of `roost doctor`: what fails or is missing first, what passes folded. */
export function SystemChecks() {
  const t = useText(system);
  const { data, error, isFetching, refetch } = useQuery(checksQuery);
  const of = (...wanted: readonly Check['status'][]) => data?.checks.filter(({ status }) => wanted.includes(status)) ?? [];
  const problems = [...of('fail'), ...of('no')];
  const passed = of('ok');
  return (
    <Section
      title={t.checks}
      actions={
        <Button isDisabled={isFetching} onPress={() => void refetch()}>
          <RotateCw size={17} aria-hidden /> {isFetching ? t.checking : t.checkAgain}
        </Button>
      }
    >
      <Note>{data || error ? t.checksText : t.checksRun}</Note>
      {error && <ErrorPanel error={error} onRetry={refetch} />}
      {problems.length > 0 && <CheckList label={t.checks} checks={problems} />}
      {data && problems.length === 0 && <p>{t.allPass}</p>}
      {passed.length > 0 && (
        <details className={styles.passed}>
          <summary>{t.passed(passed.length)}</summary>
          <CheckList label={t.passed(passed.length)} checks={passed} />
        </details>
      )}
    </Section>
  );
}

/** Parts and details are the words of the command line, which are English. */
function CheckList({ label, checks }: { label: string; checks: readonly Check[] }) {
  const t = useText(system);
  return (
    <ItemList label={label}>
      {checks.map(({ part, status, detail }) => (
        <Item
          key={part}
          title={
            <span lang="en" translate="no">
              {part}
            </span>
          }
          badge={<StatusBadge tone={TONES[status]}>{t.status[status]}</StatusBadge>}
        >
          <span lang="en" translate="no">
            {detail}
          </span>
        </Item>
      ))}
    </ItemList>
  );
}
