import { useInfiniteQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';

import { templateListQuery, type Template } from '../../api/library';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { EmptyState } from '../../components/EmptyState';
import { TextField } from '../../components/Field';
import { Page } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Note, Row } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';
import styles from './library.module.css';
import { SubmitDialog } from './SubmitDialog';
import { TemplateDialog } from './TemplateDialog';

export function TemplateListPage() {
  const t = useText(library);
  const may = useMay();
  const [typed, setTyped] = useState('');
  const wanted = useDeferredValue(typed.trim());
  const query = useInfiniteQuery(templateListQuery(wanted));
  const [openId, setOpenId] = useState<string | null>(null);
  const [isSubmitting, setSubmitting] = useState(false);
  const templates = query.data?.pages.flatMap((page) => page.templates) ?? [];
  return (
    <Page
      title={t.templates}
      lead={t.templatesLead}
      actions={
        may('editor') && (
          <Button kind="primary" onPress={() => setSubmitting(true)}>
            {t.submit}
          </Button>
        )
      }
    >
      <TextField label={t.search} value={typed} onChange={setTyped} type="search" autoComplete="off" />
      <Loaded query={query}>
        {() => (
          <>
            {templates.length === 0 && !wanted && <EmptyState title={t.noTemplates}>{t.noTemplatesText}</EmptyState>}
            {templates.length === 0 && wanted && <Note>{t.noMatch}</Note>}
            <ul className={styles.cards}>
              {templates.map((template) => (
                <li key={template.templateId}>
                  <TemplateCard template={template} onOpen={setOpenId} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
      <LoadMore query={query} />
      {isSubmitting && <SubmitDialog onClose={() => setSubmitting(false)} />}
      {openId !== null && <TemplateDialog templateId={openId} onClose={() => setOpenId(null)} />}
    </Page>
  );
}

function TemplateCard({ template, onOpen }: { template: Template; onOpen: (id: string) => void }) {
  const t = useText(library);
  return (
    <article className={styles.card}>
      <Row>
        <StatusBadge tone={template.status === 'published' ? 'ok' : 'idle'}>{t.statuses[template.status]}</StatusBadge>
        <span className={styles.text}>{template.category}</span>
      </Row>
      <h2>
        <button type="button" className={styles.name} aria-haspopup="dialog" onClick={() => onOpen(template.templateId)}>
          {template.defaultEmoji ? `${template.defaultEmoji} ` : ''}
          {template.name}
        </button>
      </h2>
      <p className={styles.text}>{template.description}</p>
      <Note small>
        {t.author}: {template.authorName}
      </Note>
    </article>
  );
}
