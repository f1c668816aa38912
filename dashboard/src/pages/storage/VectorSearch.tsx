import { useMutation } from '@tanstack/react-query';
import { useState, type SyntheticEvent } from 'react';

import { searchGroup } from '../../api/vectors';
import { Button } from '../../components/Button';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { Section } from '../../components/Page';
import { Note, PlainList, Row, Stack } from '../../components/Row';
import { useLanguage, useText } from '../../i18n/language';
import * as vectors from '../../i18n/vectors';
import styles from './storage.module.css';

/** A question to the files of a group, and the chunks of text that are nearest to it. */
export function VectorSearch({ groupId }: { groupId: string }) {
  const t = useText(vectors);
  const { language } = useLanguage();
  const [text, setText] = useState('');
  const search = useMutation({ mutationFn: () => searchGroup(groupId, text.trim()) });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (text.trim() && !search.isPending) search.mutate();
  };
  const digits = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return (
    <Section title={t.search}>
      <form onSubmit={submit}>
        <Stack>
          <TextField label={t.question} value={text} onChange={setText} autoComplete="off" maxLength={4000} />
          <Row>
            <Button kind="primary" type="submit" isDisabled={!text.trim() || search.isPending}>
              {t.search}
            </Button>
          </Row>
        </Stack>
      </form>
      {search.error && <ErrorPanel error={search.error} />}
      {search.data && search.data.outdated_files > 0 && <Note>{t.outdated(search.data.outdated_files)}</Note>}
      {search.data?.matches.length === 0 && <Note>{t.noResults}</Note>}
      {search.data && search.data.matches.length > 0 && (
        <PlainList label={t.results}>
          {search.data.matches.map((match) => (
            <li key={`${match.file_id} ${match.begin}`}>
              <Row>
                <strong>{match.name ?? match.cid}</strong>
                <span>{t.score(digits.format(match.score))}</span>
              </Row>
              <blockquote className={styles.chunk}>{match.text}</blockquote>
            </li>
          ))}
        </PlainList>
      )}
    </Section>
  );
}
