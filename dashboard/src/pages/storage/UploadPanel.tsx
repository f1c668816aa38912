import { useSyncExternalStore } from 'react';

import { uploads, type UploadItem } from '../../api/uploads';
import { Button } from '../../components/Button';
import { formatBytes } from '../../components/bytes';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Section } from '../../components/Page';
import { PlainList, Row } from '../../components/Row';
import { useLanguage, useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';
import styles from './storage.module.css';

/** The uploads of this window, with their progress. */
export function UploadPanel() {
  const t = useText(storage);
  const items = useSyncExternalStore(uploads.watch, uploads.state);
  if (items.length === 0) return null;
  return (
    <Section title={t.uploads}>
      <PlainList label={t.uploads}>
        {items.map((item) => (
          <li key={item.id}>
            <UploadRow item={item} />
          </li>
        ))}
      </PlainList>
    </Section>
  );
}

function UploadRow({ item }: { item: UploadItem }) {
  const t = useText(storage);
  const { language } = useLanguage();
  const end = item.state === 'done' ? t.dismiss : t.cancel;
  const canResume = item.resume && (item.state === 'paused' || item.state === 'failed');
  return (
    <div className={styles.upload}>
      <span>
        {item.name} ({formatBytes(item.size, language)})
      </span>
      <span role="status">{t.uploadState[item.state]}</span>
      <progress aria-label={t.progress(item.name)} max={item.size || 1} value={item.state === 'done' ? item.size || 1 : item.sent} />
      <Row end>
        {item.state === 'sending' && item.pause && (
          <Button aria-label={t.ofUpload(t.pause, item.name)} onPress={item.pause}>
            {t.pause}
          </Button>
        )}
        {canResume && (
          <Button aria-label={t.ofUpload(t.resume, item.name)} onPress={item.resume}>
            {t.resume}
          </Button>
        )}
        <Button aria-label={t.ofUpload(end, item.name)} onPress={item.remove}>
          {end}
        </Button>
      </Row>
      {item.error !== null && <ErrorPanel error={item.error} />}
    </div>
  );
}
