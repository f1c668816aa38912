import {
  Blocks,
  Bot,
  HardDrive,
  House,
  KeyRound,
  LayoutDashboard,
  LayoutTemplate,
  Lock,
  MessageSquare,
  Store,
  type LucideIcon,
} from 'lucide-react';

import { en } from '../i18n/shell.en';

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
] as const satisfies readonly { to: string; icon: LucideIcon; label: Label }[];

/** Second level: the pages of the agent that is open. */
export const AGENT_PAGES = [
  { to: '/agents/$id/overview', icon: LayoutDashboard, label: 'overview' },
  { to: '/agents/$id/chat', icon: MessageSquare, label: 'chat' },
] as const satisfies readonly { to: string; icon: LucideIcon; label: Label }[];
