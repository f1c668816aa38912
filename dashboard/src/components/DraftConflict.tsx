import { lazy, Suspense } from 'react';

import * as drafts from '../i18n/drafts';
import { useText } from '../i18n/language';
import { Button } from './Button';
import styles from './DraftConflict.module.css';
import { Row } from './Row';
import { Skeleton } from './Skeleton';

interface Props {
  base: string;
  theirs: string;
  onKeepMine: () => void;
  onTakeTheirs: () => void;
}

const Comparison = lazy(async () => ({ default: (await import('./Comparison')).Comparison }));

/** What others changed in a text that is being edited, and the choice between theirs and one's own. */
export function DraftConflict({ base, theirs, onKeepMine, onTakeTheirs }: Props) {
  const t = useText(drafts);
  return (
    <section className={styles.panel} role="alert">
      <strong>{t.conflict}</strong>
      <p>{t.conflictText}</p>
      <Suspense fallback={<Skeleton lines={2} />}>
        <Comparison label={t.changes} before={base} after={theirs} />
      </Suspense>
      <Row>
        <Button onPress={onTakeTheirs}>{t.takeTheirs}</Button>
        <Button onPress={onKeepMine}>{t.keepMine}</Button>
        <span>{t.keepMineText}</span>
      </Row>
    </section>
  );
}
