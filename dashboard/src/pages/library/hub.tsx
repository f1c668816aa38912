import { useInfiniteQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';

import { hubQuery, type HubSkill } from '../../api/library';
import { EmptyState } from '../../components/EmptyState';
import { TextField } from '../../components/Field';
import { Page } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Note, Row } from '../../components/Row';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';
import { HubDialog } from './HubDialog';
import styles from './library.module.css';
import { VerdictBadge } from './VerdictView';

export function HubPage() {
  const t = useText(library);
  const [typed, setTyped] = useState('');
  const wanted = useDeferredValue(typed.trim());
  const query = useInfiniteQuery(hubQuery(wanted));
  const [slug, setSlug] = useState<string | null>(null);
  const skills = query.data?.pages.flatMap((page) => page.skills) ?? [];
  return (
    <Page title={t.hub} lead={t.hubLead}>
      <TextField label={t.search} value={typed} onChange={setTyped} type="search" autoComplete="off" />
      <Loaded query={query}>
        {() => (
          <>
            {skills.length === 0 && !wanted && <EmptyState title={t.noHub}>{t.noHubText}</EmptyState>}
            {skills.length === 0 && wanted && <Note>{t.noMatch}</Note>}
            <ul className={styles.cards}>
              {skills.map((skill) => (
                <li key={skill.hubSkillId}>
                  <HubCard skill={skill} onOpen={setSlug} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
      <LoadMore query={query} />
      {slug !== null && <HubDialog slug={slug} onClose={() => setSlug(null)} />}
    </Page>
  );
}

function HubCard({ skill, onOpen }: { skill: HubSkill; onOpen: (slug: string) => void }) {
  const t = useText(library);
  return (
    <article className={styles.card}>
      <Row>
        <VerdictBadge verdict={skill.verdict} />
        <span className={styles.text}>{skill.version}</span>
      </Row>
      <h2>
        <button type="button" className={styles.name} aria-haspopup="dialog" onClick={() => onOpen(skill.slug)}>
          {skill.name}
        </button>
      </h2>
      <p className={styles.text}>{skill.description}</p>
      <Note small>
        {t.publisher}: {skill.bundled ? t.comesWithRoost : skill.slug}
      </Note>
    </article>
  );
}
