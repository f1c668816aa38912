import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from '@tanstack/react-router';

import { readActivitySearch } from '../api/activitySearch';
import { sessionQuery } from '../api/session';
import type { Network } from '../api/storage';
import { PERIODS, type Period } from '../api/usage';
import { Skeleton } from '../components/Skeleton';
import { AgentPages } from './AgentPages';
import { Shell } from './Shell';
import { safePath } from './safePath';
import { PageNotFound, PageProblem } from './problems';

const root = createRootRouteWithContext<{ queries: QueryClient }>()({ component: Outlet });

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  // The router keeps parameters that are left out here as they are in the address.
  validateSearch: (search): { next?: string } => ({ next: safePath(search.next) }),
  component: lazyRouteComponent(() => import('../pages/login/login'), 'LoginPage'),
});

/** All pages for whom is signed in. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  beforeLoad: async ({ context, location }) => {
    const session = await context.queries.ensureQueryData(sessionQuery);
    if (session === null) throw redirect({ to: '/login', search: { next: location.href } });
    return { session };
  },
});
const home = createRoute({
  getParentRoute: () => shell,
  path: '/',
  component: lazyRouteComponent(() => import('../pages/home/home'), 'HomePage'),
});
const agents = createRoute({
  getParentRoute: () => shell,
  path: '/agents',
  component: lazyRouteComponent(() => import('../pages/agents/list/list'), 'AgentListPage'),
});
const newAgent = createRoute({
  getParentRoute: () => shell,
  path: '/agents/new',
  component: lazyRouteComponent(() => import('../pages/agents/new/new'), 'NewAgentPage'),
});
const agent = createRoute({ getParentRoute: () => shell, path: '/agents/$id', component: AgentPages });
const agentIndex = createRoute({
  getParentRoute: () => agent,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/agents/$id/overview', params, replace: true });
  },
});
const overview = createRoute({
  getParentRoute: () => agent,
  path: '/overview',
  component: lazyRouteComponent(() => import('../pages/agents/overview/overview'), 'AgentOverviewPage'),
});
const chat = createRoute({
  getParentRoute: () => agent,
  path: '/chat',
  component: lazyRouteComponent(() => import('../pages/agents/chat/chat'), 'AgentChatPage'),
});
const secrets = createRoute({
  getParentRoute: () => shell,
  path: '/secrets',
  component: lazyRouteComponent(() => import('../pages/secrets/list'), 'SecretListPage'),
});
const keys = createRoute({
  getParentRoute: () => shell,
  path: '/keys',
  component: lazyRouteComponent(() => import('../pages/keys/list'), 'KeyListPage'),
});
/** Return the network and group of an address. */
function readFileSearch(search: Record<string, unknown>): { network?: Network; group?: string } {
  return {
    network: search.network === 'public' ? 'public' : undefined,
    group: typeof search.group === 'string' ? search.group : undefined,
  };
}

const storage = createRoute({ getParentRoute: () => shell, path: '/storage', component: Outlet });
const storageIndex = createRoute({
  getParentRoute: () => storage,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/storage/files', replace: true });
  },
});
const files = createRoute({
  getParentRoute: () => storage,
  path: '/files',
  validateSearch: readFileSearch,
  component: lazyRouteComponent(() => import('../pages/storage/files'), 'StorageFilesPage'),
});
const groups = createRoute({
  getParentRoute: () => storage,
  path: '/groups',
  validateSearch: (search): { network?: Network } => ({ network: search.network === 'public' ? 'public' : undefined }),
  component: lazyRouteComponent(() => import('../pages/storage/groups'), 'StorageGroupsPage'),
});
const gateways = createRoute({
  getParentRoute: () => storage,
  path: '/gateways',
  component: lazyRouteComponent(() => import('../pages/storage/gateways'), 'StorageGatewaysPage'),
});
const vectors = createRoute({
  getParentRoute: () => storage,
  path: '/vectors',
  validateSearch: readFileSearch,
  component: lazyRouteComponent(() => import('../pages/storage/vectors'), 'StorageVectorsPage'),
});
const payments = createRoute({
  getParentRoute: () => storage,
  path: '/payments',
  component: lazyRouteComponent(() => import('../pages/storage/payments'), 'StoragePaymentsPage'),
});
const activity = createRoute({
  getParentRoute: () => shell,
  path: '/activity',
  validateSearch: readActivitySearch,
  component: lazyRouteComponent(() => import('../pages/activity/activity'), 'ActivityPage'),
});
const system = createRoute({
  getParentRoute: () => shell,
  path: '/system',
  component: lazyRouteComponent(() => import('../pages/system/system'), 'SystemPage'),
});
const skills = createRoute({
  getParentRoute: () => shell,
  path: '/skills',
  component: lazyRouteComponent(() => import('../pages/library/skills'), 'SkillListPage'),
});
const hub = createRoute({
  getParentRoute: () => shell,
  path: '/hub',
  component: lazyRouteComponent(() => import('../pages/library/hub'), 'HubPage'),
});
const templates = createRoute({
  getParentRoute: () => shell,
  path: '/templates',
  component: lazyRouteComponent(() => import('../pages/library/templates'), 'TemplateListPage'),
});
const logs = createRoute({
  getParentRoute: () => agent,
  path: '/logs',
  component: lazyRouteComponent(() => import('../pages/agents/logs/logs'), 'AgentLogsPage'),
});
const tasks = createRoute({
  getParentRoute: () => agent,
  path: '/tasks',
  component: lazyRouteComponent(() => import('../pages/agents/tasks/tasks'), 'AgentTasksPage'),
});
const agentFiles = createRoute({
  getParentRoute: () => agent,
  path: '/files',
  component: lazyRouteComponent(() => import('../pages/agents/files/files'), 'AgentFilesPage'),
});
const snapshots = createRoute({
  getParentRoute: () => agent,
  path: '/snapshots',
  component: lazyRouteComponent(() => import('../pages/agents/snapshots/snapshots'), 'AgentSnapshotsPage'),
});
const agentSecrets = createRoute({
  getParentRoute: () => agent,
  path: '/secrets',
  component: lazyRouteComponent(() => import('../pages/agents/secrets/secrets'), 'AgentSecretsPage'),
});
const devices = createRoute({
  getParentRoute: () => agent,
  path: '/devices',
  component: lazyRouteComponent(() => import('../pages/agents/devices/devices'), 'AgentDevicesPage'),
});
const config = createRoute({
  getParentRoute: () => agent,
  path: '/config',
  component: lazyRouteComponent(() => import('../pages/agents/config/config'), 'AgentConfigPage'),
});
const channels = createRoute({
  getParentRoute: () => agent,
  path: '/channels',
  component: lazyRouteComponent(() => import('../pages/agents/channels/channels'), 'AgentChannelsPage'),
});
const agentSkills = createRoute({
  getParentRoute: () => agent,
  path: '/skills',
  component: lazyRouteComponent(() => import('../pages/agents/skills/skills'), 'AgentSkillsPage'),
});
const routes = createRoute({
  getParentRoute: () => agent,
  path: '/routes',
  component: lazyRouteComponent(() => import('../pages/agents/routes/routes'), 'AgentRoutesPage'),
});

const terminal = createRoute({
  getParentRoute: () => agent,
  path: '/terminal',
  component: lazyRouteComponent(() => import('../pages/agents/terminal/terminal'), 'AgentTerminalPage'),
});

/** Return the number of days of an address. */
function readUsageSearch(search: Record<string, unknown>): { days?: Period } {
  return { days: PERIODS.find((period) => period === Number(search.days)) };
}

const agentUsage = createRoute({
  getParentRoute: () => agent,
  path: '/usage',
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(() => import('../pages/usage/agent'), 'AgentUsagePage'),
});
const usage = createRoute({
  getParentRoute: () => shell,
  path: '/usage',
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(() => import('../pages/usage/tenant'), 'UsagePage'),
});

const agentSettings = createRoute({
  getParentRoute: () => agent,
  path: '/settings',
  component: lazyRouteComponent(() => import('../pages/agents/settings/settings'), 'AgentSettingsPage'),
});

const agentPages = [
  logs,
  agentFiles,
  terminal,
  snapshots,
  tasks,
  agentSkills,
  agentSecrets,
  channels,
  devices,
  routes,
  config,
  agentUsage,
  agentSettings,
] as const;

const missing = createRoute({ getParentRoute: () => shell, path: '$', component: PageNotFound });

const tree = root.addChildren([
  login,
  shell.addChildren([
    home,
    agents,
    newAgent,
    agent.addChildren([agentIndex, overview, chat, ...agentPages]),
    secrets,
    keys,
    skills,
    hub,
    templates,
    storage.addChildren([storageIndex, files, groups, gateways, vectors, payments]),
    usage,
    activity,
    system,
    missing,
  ]),
]);

export function createAppRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    defaultPreload: 'intent',
    defaultPendingMs: 300,
    defaultPendingComponent: Skeleton,
    defaultErrorComponent: PageProblem,
    defaultNotFoundComponent: PageNotFound,
    scrollRestoration: false,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
