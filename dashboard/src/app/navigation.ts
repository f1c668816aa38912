import {
  Activity,
  Blocks,
  Bot,
  CalendarClock,
  Camera,
  ChartColumn,
  FolderTree,
  HardDrive,
  House,
  KeyRound,
  LayoutDashboard,
  LayoutTemplate,
  Lock,
  MessageSquare,
  MessagesSquare,
  MonitorSmartphone,
  ScrollText,
  Server,
  Settings,
  SlidersHorizontal,
  SquareTerminal,
  Store,
  Waypoints,
  type LucideIcon,
} from 'lucide-react';

import type { en } from '../i18n/shell.en';

type Label = keyof (typeof en)['pages'];

/** First level of the navigation; the first four are in the bar of phones, the others under "More". */
export const PAGES = [
  { to: '/', icon: House, label: 'home' },
  { to: '/agents', icon: Bot, label: 'agents' },
  { to: '/storage', icon: HardDrive, label: 'storage' },
  { to: '/skills', icon: Blocks, label: 'skills' },
  { to: '/hub', icon: Store, label: 'hub' },
  { to: '/templates', icon: LayoutTemplate, label: 'templates' },
  { to: '/secrets', icon: Lock, label: 'secrets' },
  { to: '/keys', icon: KeyRound, label: 'keys' },
  { to: '/usage', icon: ChartColumn, label: 'usage' },
  { to: '/activity', icon: Activity, label: 'activity' },
  { to: '/system', icon: Server, label: 'system', forOperator: true },
] as const satisfies readonly { to: string; icon: LucideIcon; label: Label; forOperator?: true }[];

/** Second level: the pages of the agent that is open. */
export const AGENT_PAGES = [
  { to: '/agents/$id/overview', icon: LayoutDashboard, label: 'overview' },
  { to: '/agents/$id/chat', icon: MessageSquare, label: 'chat' },
  { to: '/agents/$id/logs', icon: ScrollText, label: 'logs' },
  { to: '/agents/$id/terminal', icon: SquareTerminal, label: 'terminal' },
  { to: '/agents/$id/files', icon: FolderTree, label: 'files' },
  { to: '/agents/$id/snapshots', icon: Camera, label: 'snapshots' },
  { to: '/agents/$id/tasks', icon: CalendarClock, label: 'tasks' },
  { to: '/agents/$id/skills', icon: Blocks, label: 'agentSkills' },
  { to: '/agents/$id/secrets', icon: KeyRound, label: 'agentSecrets' },
  { to: '/agents/$id/channels', icon: MessagesSquare, label: 'channels' },
  { to: '/agents/$id/devices', icon: MonitorSmartphone, label: 'devices' },
  { to: '/agents/$id/routes', icon: Waypoints, label: 'routes' },
  { to: '/agents/$id/config', icon: SlidersHorizontal, label: 'config' },
  { to: '/agents/$id/usage', icon: ChartColumn, label: 'agentUsage' },
  { to: '/agents/$id/settings', icon: Settings, label: 'agentSettings' },
] as const satisfies readonly { to: string; icon: LucideIcon; label: Label }[];
