import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';

import { configQuery, saveConfig, validateConfig } from '../../api/agentData';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { Editor } from '../../components/Editor';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { StatusBadge } from '../../components/StatusBadge';
import { showToast } from '../../components/Toast';
import * as config from '../../i18n/config';
import { useText } from '../../i18n/language';
import styles from './config.module.css';

const route = getRouteApi('/shell/agents/$id/config');

export function AgentConfigPage() {
  const { id } = route.useParams();
  const t = useText(config);
  const query = useQuery(configQuery(id));
  return (
    <Page title={t.title} lead={t.lead} fills>
      <div className={styles.layout}>
        <Loaded query={query}>{({ config: text }) => <ConfigEditor agentId={id} text={text} />}</Loaded>
      </div>
    </Page>
  );
}

function ConfigEditor({ agentId, text }: { agentId: string; text: string }) {
  const t = useText(config);
  const may = useMay();
  const [draft, setDraft] = useState<string | null>(null);
  const shown = draft ?? text;
  const check = useMutation({ mutationFn: () => validateConfig(agentId, shown) });
  const save = useMutation({
    mutationFn: (content: string) => saveConfig(agentId, content),
    onSuccess: (_, content) => {
      setDraft((now) => (now === content ? null : now)); // typing goes on while it is saved
      showToast(t.saved);
    },
  });
  const isChanged = draft !== null && draft !== text;
  const isPending = check.isPending || save.isPending;
  const change = (next: string) => {
    setDraft(next);
    check.reset();
    save.reset();
  };
  const problem = check.error ?? save.error;
  return (
    <>
      {problem && <ErrorPanel error={problem} title={t.invalid} />}
      {check.data && !check.data.valid && <ErrorPanel error={new Error(check.data.output)} title={t.invalid} />}
      <Editor label={t.title} language="json" value={shown} onChange={change} readOnly={!may('editor')} />
      {may('editor') && (
        <div className={styles.actions}>
          <Button kind="primary" onPress={() => save.mutate(shown)} isDisabled={!isChanged || isPending}>
            {save.isPending ? t.saving : t.save}
          </Button>
          <Button onPress={() => check.mutate()} isDisabled={isPending}>
            {t.validate}
          </Button>
          <Button onPress={() => change(text)} isDisabled={!isChanged || isPending}>
            {t.discard}
          </Button>
          {isChanged && <StatusBadge tone="warn">{t.unsaved}</StatusBadge>}
          {check.data?.valid && <span role="status">{t.valid}</span>}
        </div>
      )}
    </>
  );
}
