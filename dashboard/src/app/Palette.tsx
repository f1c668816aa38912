import { useQuery } from '@tanstack/react-query';
import { useNavigate, type LinkProps } from '@tanstack/react-router';
import { Bot, Plus, type LucideIcon } from 'lucide-react';
import { useMemo } from 'react';
import { Autocomplete, Dialog, Input, Menu, MenuItem, Modal, ModalOverlay, SearchField, useFilter } from 'react-aria-components';

import { agentsQuery } from '../api/agents';
import dialog from '../components/Dialog.module.css';
import menu from '../components/Menu.module.css';
import { useText } from '../i18n/language';
import * as shell from '../i18n/shell';
import styles from './Palette.module.css';
import { usePages } from './usePages';
import { useMay } from './useSession';

interface Command {
  readonly id: string;
  readonly title: string;
  readonly icon: LucideIcon;
  readonly to: Pick<LinkProps, 'to' | 'params'>;
}

/** The search for pages, agents and actions (Ctrl+K). */
export default function Palette({ onClose }: { onClose: () => void }) {
  const t = useText(shell);
  const navigate = useNavigate();
  const commands = useCommands();
  const { contains } = useFilter({ sensitivity: 'base' });
  return (
    <ModalOverlay className={`${dialog.overlay} ${styles.overlay}`} isOpen isDismissable onOpenChange={onClose}>
      <Modal className={dialog.modal!}>
        <Dialog className={dialog.dialog!} aria-label={t.commands}>
          <Autocomplete filter={contains}>
            <SearchField className={styles.search!} aria-label={t.commands} autoFocus>
              <Input className={styles.input!} placeholder={t.searchHint} />
            </SearchField>
            <Menu
              className={styles.list!}
              aria-label={t.commands}
              items={commands}
              renderEmptyState={() => <p className={styles.empty}>{t.noMatch}</p>}
              onAction={(key) => {
                const chosen = commands.find((command) => command.id === key);
                onClose();
                if (chosen) void navigate(chosen.to);
              }}
            >
              {({ id, title, icon: Icon }) => (
                <MenuItem id={id} textValue={title} className={menu.item!}>
                  <Icon size={17} aria-hidden /> <span className={styles.title}>{title}</span>
                </MenuItem>
              )}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

function useCommands(): readonly Command[] {
  const t = useText(shell);
  const may = useMay();
  const shown = usePages();
  const agents = useQuery(agentsQuery).data?.agents;
  return useMemo(() => {
    const pages = shown.map(({ to, icon, label }) => ({ id: to, title: t.pages[label], icon, to: { to } }));
    const create = { id: 'new', title: t.pages.newAgent, icon: Plus, to: { to: '/agents/new' as const } };
    const found = (agents ?? []).map((agent) => ({
      id: agent.agentId,
      title: agent.name,
      icon: Bot,
      to: { to: '/agents/$id/overview' as const, params: { id: agent.agentId } },
    }));
    return [...pages, ...(may('editor') ? [create] : []), ...found];
  }, [t, agents, may, shown]);
}
