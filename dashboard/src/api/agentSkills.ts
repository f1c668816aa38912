import { queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';

export type AgentSkill = components['schemas']['AgentSkillRecord'];
export type SkillUpdate = components['schemas']['SkillUpdateRecord'];

export const agentSkillsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', agentId, 'skills'],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/skills', { params: { path: { agentId } }, signal })),
  });

/** Which skills of an agent have a newer version. Events of the library make it stale. */
export const skillUpdatesQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['skills', 'updates', agentId],
    queryFn: ({ signal }) => body(api.GET('/v0/agents/{agentId}/skills/updates', { params: { path: { agentId } }, signal })),
  });

export const attachSkill = (agentId: string, skillCid: string, acknowledge: boolean) =>
  body(api.POST('/v0/agents/{agentId}/skills', { params: { path: { agentId } }, body: { skillCids: [skillCid], acknowledge } }));

export const detachSkill = (agentId: string, skillId: string) =>
  body(api.DELETE('/v0/agents/{agentId}/skills/{skillId}', { params: { path: { agentId, skillId } } }));

/** Let an agent take another version of a skill that it has. */
export const updateSkill = (agentId: string, skillId: string, skillCid: string, acknowledge: boolean) =>
  body(
    api.POST('/v0/agents/{agentId}/skills/{skillId}/update', {
      params: { path: { agentId, skillId } },
      body: { skillCid, acknowledge },
    }),
  );
