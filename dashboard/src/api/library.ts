import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';

import { api, body, sendTo } from './client';
import type { components } from './schema';

export type Skill = components['schemas']['SkillRecord'];
export type HubSkill = components['schemas']['HubSkillRecord'];
export type Verdict = components['schemas']['VerdictRecord'];
export type Template = components['schemas']['TemplateRecord'];

export const skillsQuery = queryOptions({ queryKey: ['skills'], queryFn: ({ signal }) => body(api.GET('/v0/skills', { signal })) });

export const skillVersionsQuery = (skillId: string) =>
  queryOptions({
    queryKey: ['skills', skillId, 'versions'],
    queryFn: ({ signal }) => body(api.GET('/v0/skills/{skillId}/versions', { params: { path: { skillId } }, signal })),
  });

/** Upload the archive or the SKILL.md of a skill. */
export async function uploadSkill(file: File): Promise<Skill> {
  const form = new FormData();
  form.append('file', file);
  const response = await sendTo('/v0/skills', { method: 'POST', body: form });
  return ((await response.json()) as { skill: Skill }).skill;
}

export const deleteSkill = (skillCid: string) => body(api.DELETE('/v0/skills/{skillCid}', { params: { path: { skillCid } } }));

export const publishSkill = (skillId: string, changelog: string, acknowledgement: string | null) =>
  body(api.POST('/v0/skills/{skillId}/publish', { params: { path: { skillId } }, body: { changelog, acknowledgement } }));

export const hubQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['hub', q],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      body(
        api.GET('/v0/hub', { params: { query: { limit: 50, ...(q && { q }), ...(pageParam && { cursor: pageParam }) } }, signal }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

/** A skill by its slug: `@owner/name`, or the name alone. */
export const hubSkillQuery = (slug: string) =>
  queryOptions({
    queryKey: ['hub', 'skill', slug],
    queryFn: ({ signal }) => {
      const [owner, name] = slug.split('/');
      return name === undefined
        ? body(api.GET('/v0/hub/{slug}', { params: { path: { slug } }, signal }))
        : body(api.GET('/v0/hub/{owner}/{name}', { params: { path: { owner: owner!, name } }, signal }));
    },
  });

export const installHubSkill = (hubSkillId: string, acknowledge: boolean) =>
  body(api.POST('/v0/hub/{hubSkillId}/install', { params: { path: { hubSkillId } }, body: { acknowledge } }));

/** Withdraw a skill of one's own from the hub. */
export const unpublishSkill = (hubSkillId: string) => body(api.DELETE('/v0/hub/{hubSkillId}', { params: { path: { hubSkillId } } }));

export const templateListQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['templates', 'list', q],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      body(
        api.GET('/v0/templates', {
          params: { query: { limit: 50, ...(q && { q }), ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });

export const templateQuery = (templateId: string) =>
  queryOptions({
    queryKey: ['templates', 'one', templateId],
    queryFn: ({ signal }) => body(api.GET('/v0/templates/id/{templateId}', { params: { path: { templateId } }, signal })),
  });

export interface TemplateSource {
  readonly gitUrl: string;
  readonly ref: string;
  readonly path: string;
  readonly isPublic: boolean;
}

const sourceOf = ({ gitUrl, ref, path }: TemplateSource) => ({ gitUrl, ...(ref && { ref }), ...(path && { path }) });

export const submitTemplate = (source: TemplateSource) =>
  body(api.POST('/v0/templates', { body: { ...sourceOf(source), public: source.isPublic } }));

/** Look whether a repository holds a template; nothing is stored. */
export const validateTemplate = (source: TemplateSource) => body(api.POST('/v0/templates/validate', { body: sourceOf(source) }));

/** Return the names of the branches and tags of a public repository, the default branch first. */
export async function listRefs(gitUrl: string): Promise<readonly { name: string; isTag: boolean }[]> {
  const { branches, tags, defaultBranch } = await body(api.POST('/v0/templates/refs', { body: { gitUrl } }));
  const named = (refs: typeof branches, isTag: boolean) => refs.map(({ name }) => ({ name, isTag }));
  return [
    ...named(branches, false).sort((a, b) => Number(b.name === defaultBranch) - Number(a.name === defaultBranch)),
    ...named(tags, true),
  ];
}

export const archiveTemplate = (templateId: string) =>
  body(api.DELETE('/v0/templates/{templateId}', { params: { path: { templateId } } }));
