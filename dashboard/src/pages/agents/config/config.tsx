import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useState } from 'react';

import { configQuery, saveConfig, validateConfig } from '../../../api/agentData';
import type { StoredText } from '../../../api/client';
import { ApiError } from '../../../api/errors';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { DraftConflict } from '../../../components/DraftConflict';
import { Editor } from '../../../components/Editor';
import type { LineProblem } from '../../../components/editorProblems';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { LeaveGuard } from '../../../components/LeaveGuard';
import { Loaded } from '../../../components/Loaded';
import { Page } from '../../../components/Page';
import { StatusBadge } from '../../../components/StatusBadge';
import { showToast } from '../../../components/Toast';
import { useDraft } from '../../../components/useDraft';
import * as config from '../../../i18n/config';
import { useText } from '../../../i18n/language';
import styles from './config.module.css';
import { configLanguage, locateProblems, type ConfigProblems } from './configProblems';

const route = getRouteApi('/shell/agents/$id/config');

export function AgentConfigPage() {
  const { id } = route.useParams();
  const t = useText(config);
  const query = useQuery(configQuery(id));
  return (
    <Page title={t.title} lead={t.lead} fills>
      <div className={styles.layout}>
        <Loaded query={query}>{(stored) => <ConfigEditor agentId={id} stored={stored} />}</Loaded>
      </div>
    </Page>
  );
}

function ConfigEditor({ agentId, stored }: { agentId: string; stored: StoredText }) {
  const t = useText(config);
  const may = useMay();
  const queries = useQueryClient();
  const draft = useDraft({
    stored,
    load: () => queries.fetchQuery({ ...configQuery(agentId), staleTime: 0 }),
    write: (content, etag) => saveConfig(agentId, content, etag),
    onSaved: () => showToast(t.saved),
  });
  const check = useMutation({ mutationFn: () => validateConfig(agentId, draft.text) });
  const isPending = check.isPending || draft.isSaving;
  const problem = check.error ?? draft.error;
  const found = useProblems(draft.text, problem, check.data && !check.data.valid ? check.data.output : null);
  const change = (next: string) => {
    draft.change(next);
    if (check.isSuccess) check.reset(); // marks stay until the next check
  };
  const save = () => {
    check.reset();
    draft.save();
  };
  const validate = () => {
    draft.forgetError();
    check.mutate();
  };
  const discard = () => {
    draft.discard();
    check.reset();
  };
  return (
    <>
      <LeaveGuard isChanged={draft.isChanged} />
      {draft.conflict && <DraftConflict {...draft.conflict} onKeepMine={draft.keepMine} onTakeTheirs={discard} />}
      {found.error && <ErrorPanel error={found.error} title={t.invalid} />}
      <Editor
        label={t.title}
        language={configLanguage(stored.text)}
        value={draft.text}
        onChange={change}
        onSave={save}
        readOnly={!may('editor')}
        problems={found.marked}
      />
      {may('editor') && (
        <div className={styles.actions}>
          <Button kind="primary" onPress={save} isDisabled={!draft.isChanged || draft.conflict !== null || isPending}>
            {draft.isSaving ? t.saving : t.save}
          </Button>
          <Button onPress={validate} isDisabled={isPending}>
            {check.isPending ? t.validating : t.validate}
          </Button>
          <Button onPress={discard} isDisabled={!draft.isChanged || isPending}>
            {t.discard}
          </Button>
          {draft.isChanged && <StatusBadge tone="warn">{t.unsaved}</StatusBadge>}
          {check.data?.valid && <span role="status">{t.valid}</span>}
        </div>
      )}
    </>
  );
}

const NO_MARKS: readonly LineProblem[] = [];

/** What the engine says about a text: marks for its lines, and an error with all that belongs to none. */
function useProblems(text: string, problem: Error | null, output: string | null) {
  const t = useText(config);
  const detail = problem instanceof ApiError ? problem.detail : output;
  const [located, setLocated] = useState<{ of: string; problems: ConfigProblems } | null>(null);
  const locate = useEffectEvent((words: string) => locateProblems(text, words));
  useEffect(() => {
    if (detail === null) return;
    let isCurrent = true;
    void locate(detail).then((problems) => isCurrent && setLocated({ of: detail, problems }));
    return () => {
      isCurrent = false;
    };
  }, [detail, problem, output]); // the text is the one that the engine saw; the editor moves marks as it is edited
  const { marked, others } = (located?.of === detail && located.problems) || { marked: NO_MARKS, others: null };
  if (detail === null) return { marked: NO_MARKS, error: problem };
  const [message = '', ...more] = others === null ? [detail] : [...(marked.length > 0 ? [t.marked(marked.length)] : []), ...others];
  const { status, requestId } = problem instanceof ApiError ? problem : { status: 400, requestId: null };
  return { marked, error: new ApiError(message, status, requestId, null, more.join('\n') || null) };
}
