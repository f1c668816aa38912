import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type Task = components['schemas']['TaskRecord'];
export type TaskRun = components['schemas']['TaskRunRecord'];
export type NewTask = components['schemas']['CreateTaskRequest'];

/** How often the list is loaded again while a task runs. */
export const RUNNING_POLL_MS = 1_500;

export const tasksQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'tasks'],
    queryFn: ({ signal }) =>
      body(api.GET('/v0/agents/{agentId}/tasks', { params: { path: { agentId }, query: { includeDisabled: true } }, signal })),
  });

export const taskRunsQuery = (agentId: string, jobId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'tasks', jobId, 'runs'],
    queryFn: ({ signal }) =>
      body(
        api.GET('/v0/agents/{agentId}/tasks/{jobId}/runs', { params: { path: { agentId, jobId }, query: { limit: 50 } }, signal }),
      ),
  });

export const createTask = (agentId: string, task: NewTask) =>
  body(api.POST('/v0/agents/{agentId}/tasks', { params: { path: { agentId } }, body: task }));

export const runTask = (agentId: string, jobId: string) =>
  body(api.POST('/v0/agents/{agentId}/tasks/{jobId}/run', { params: { path: { agentId, jobId } } }));

export const toggleTask = (agentId: string, jobId: string, enabled: boolean) =>
  body(api.POST('/v0/agents/{agentId}/tasks/{jobId}/toggle', { params: { path: { agentId, jobId } }, body: { enabled } }));

export const deleteTask = (agentId: string, jobId: string) =>
  body(api.DELETE('/v0/agents/{agentId}/tasks/{jobId}', { params: { path: { agentId, jobId } } }));

/** Return whether a deleted task can be made again: one with an instruction, and a time that is still to come. */
export const isRestorableTask = ({ schedule, payload }: Task, now = Date.now()): boolean =>
  schedule !== null && payload !== null && !(schedule.at && Date.parse(schedule.at) <= now);

/** Return the request that makes a task again as it was, without its history. */
export function toNewTask({ name, description, enabled, schedule, payload, delivery, sessionTarget, wakeMode }: Task): NewTask {
  const parts = { schedule: given(schedule), payload: given(payload), delivery: given(delivery) };
  return { name, description, enabled, sessionTarget, wakeMode, ...parts } as NewTask;
}

/** Return an object without the fields that are null, which requests leave out. */
const given = (record: object | null) => Object.fromEntries(Object.entries(record ?? {}).filter(([, value]) => value !== null));
