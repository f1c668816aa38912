import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import {
  createTask,
  deleteTask,
  isRestorableTask,
  RUNNING_POLL_MS,
  runTask,
  taskRunsQuery,
  tasksQuery,
  toggleTask,
  toNewTask,
  type Task,
} from '../../../api/tasks';
import { useMay } from '../../../app/useSession';
import { useUndo } from '../../../app/useUndo';
import { Button } from '../../../components/Button';
import { ConfirmDialog } from '../../../components/ConfirmDialog';
import { Dialog } from '../../../components/Dialog';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { FormDialog } from '../../../components/FormDialog';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { Page } from '../../../components/Page';
import { Select } from '../../../components/Select';
import { StatusBadge } from '../../../components/StatusBadge';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import { useLanguage, useText } from '../../../i18n/language';
import * as tasks from '../../../i18n/tasks';
import { describeSchedule, PRESETS, toSchedule, type Preset } from './schedule';

const route = getRouteApi('/shell/agents/$id/tasks');

export function AgentTasksPage() {
  const { id } = route.useParams();
  const t = useText(tasks);
  const may = useMay();
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<Task | null>(null);
  const query = useQuery({
    ...tasksQuery(id),
    refetchInterval: ({ state }) => (state.data?.tasks.some((task) => task.running) ? RUNNING_POLL_MS : 15_000),
  });
  const create = may('editor') && (
    <Button kind="primary" onPress={() => setCreating(true)}>
      <Plus size={17} aria-hidden /> {t.create}
    </Button>
  );
  const hasTasks = query.data !== undefined && query.data.tasks.length > 0;
  return (
    <Page title={t.title} lead={t.lead} actions={hasTasks && create}>
      <Loaded query={query}>
        {(data) =>
          data.tasks.length === 0 ? (
            <EmptyState title={t.emptyTitle} action={create} command={t.command(id)}>
              {t.emptyText}
            </EmptyState>
          ) : (
            <ItemList label={t.title}>
              {data.tasks.map((task) => (
                <TaskItem key={task.id} agentId={id} task={task} onShowRuns={() => setShown(task)} />
              ))}
            </ItemList>
          )
        }
      </Loaded>
      {isCreating && <TaskForm agentId={id} onClose={() => setCreating(false)} />}
      {shown && <RunHistory agentId={id} task={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}

function TaskItem({ agentId, task, onShowRuns }: { agentId: string; task: Task; onShowRuns: () => void }) {
  const t = useText(tasks);
  const may = useMay();
  const undo = useUndo();
  const [isDeleting, setDeleting] = useState(false);
  const run = useMutation({ mutationFn: () => runTask(agentId, task.id), onSuccess: () => showToast(t.runBegun(task.name)) });
  const toggle = useMutation({ mutationFn: () => toggleTask(agentId, task.id, !task.enabled) });
  const remove = useMutation({
    mutationFn: () => deleteTask(agentId, task.id),
    onSuccess: () => {
      if (isRestorableTask(task)) undo(t.deleted(task.name), () => createTask(agentId, toNewTask(task)));
      else showToast(t.deleted(task.name));
    },
  });
  const problem = run.error ?? toggle.error;
  const actions = (
    <>
      <Button onPress={onShowRuns}>{t.history}</Button>
      {may('editor') && (
        <>
          <Button onPress={() => run.mutate()} isDisabled={run.isPending || task.running}>
            {t.run}
          </Button>
          <Button onPress={() => toggle.mutate()} isDisabled={toggle.isPending}>
            {task.enabled ? t.pause : t.resume}
          </Button>
          <Button onPress={() => setDeleting(true)}>{t.delete}</Button>
        </>
      )}
    </>
  );
  return (
    <Item title={task.name} badge={<TaskBadge task={task} />} facts={<TaskFacts task={task} />} actions={actions}>
      {task.payload && <p>{task.payload.message ?? task.payload.text}</p>}
      {problem && <ErrorPanel error={problem} />}
      {task.lastError && <ErrorPanel error={new Error(task.lastError)} title={t.failed} />}
      <ConfirmDialog
        title={t.deleteTitle(task.name)}
        action={t.delete}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={() => remove.mutateAsync()}
      >
        <p>{t.deleteText}</p>
      </ConfirmDialog>
    </Item>
  );
}

function TaskFacts({ task }: { task: Task }) {
  const t = useText(tasks);
  const { language } = useLanguage();
  return (
    <>
      <span>{describeSchedule(task.schedule, t, language)}</span>
      {task.enabled && task.nextRunAt && (
        <span>
          {t.next}: <Timestamp at={task.nextRunAt} />
        </span>
      )}
      <span>
        {task.lastRunAt ? (
          <>
            {t.last}: <Timestamp at={task.lastRunAt} />
          </>
        ) : (
          t.never
        )}
      </span>
    </>
  );
}

function TaskBadge({ task }: { task: Task }) {
  const t = useText(tasks);
  if (task.running) return <StatusBadge tone="busy">{t.running}</StatusBadge>;
  if (!task.enabled) return <StatusBadge tone="idle">{t.disabled}</StatusBadge>;
  if (task.lastError) return <StatusBadge tone="danger">{t.failed}</StatusBadge>;
  return <StatusBadge tone="ok">{t.enabled}</StatusBadge>;
}

function TaskForm({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const t = useText(tasks);
  const [name, setName] = useState('');
  const [instruction, setInstruction] = useState('');
  const [preset, setPreset] = useState<Preset>('daily');
  const [custom, setCustom] = useState('');
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const create = useMutation({
    mutationFn: () =>
      createTask(agentId, { name: name.trim(), payload: instruction.trim(), schedule: toSchedule(preset, custom, zone) }),
    onSuccess: () => showToast(t.created(name.trim())),
  });
  const isIncomplete = !name.trim() || !instruction.trim() || (preset === 'custom' && !custom.trim());
  return (
    <FormDialog title={t.create} action={t.create} onClose={onClose} onSubmit={create.mutateAsync} isDisabled={isIncomplete}>
      <TextField label={t.name} value={name} onChange={setName} autoComplete="off" autoFocus isRequired />
      <TextField label={t.instruction} hint={t.instructionHint} value={instruction} onChange={setInstruction} lines={4} isRequired />
      <Select
        label={t.schedule}
        hint={preset === 'custom' || preset === 'hourly' ? undefined : t.zone(zone)}
        value={preset}
        onChange={setPreset}
        choices={PRESETS.map((one) => ({ id: one, label: t.presets[one] }))}
      />
      {preset === 'custom' && (
        <TextField label={t.custom} hint={t.customHint} value={custom} onChange={setCustom} monospace isRequired />
      )}
    </FormDialog>
  );
}

function RunHistory({ agentId, task, onClose }: { agentId: string; task: Task; onClose: () => void }) {
  const t = useText(tasks);
  const query = useQuery(taskRunsQuery(agentId, task.id));
  return (
    <Dialog title={t.historyOf(task.name)} isOpen onClose={onClose}>
      <Loaded query={query}>
        {({ runs }) =>
          runs.length === 0 ? (
            <p>{t.noRuns}</p>
          ) : (
            <ItemList label={t.historyOf(task.name)}>
              {runs.map((one) => (
                <Item
                  key={one.id}
                  title={one.startedAt ? <Timestamp at={one.startedAt} /> : one.id}
                  badge={
                    <StatusBadge tone={one.error ? 'danger' : 'ok'}>
                      {(t.statuses as Record<string, string>)[one.status] ?? one.status}
                    </StatusBadge>
                  }
                  facts={one.durationMs != null && <span>{t.seconds((one.durationMs / 1000).toFixed(1))}</span>}
                >
                  {one.summary && <p>{one.summary}</p>}
                  {one.error && <p>{one.error}</p>}
                </Item>
              ))}
            </ItemList>
          )
        }
      </Loaded>
    </Dialog>
  );
}
