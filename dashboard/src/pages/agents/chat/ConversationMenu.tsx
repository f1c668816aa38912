import { keepPreviousData, useQuery } from '@tanstack/react-query';

import { conversationsQuery } from '../../../api/conversation';
import { Button } from '../../../components/Button';
import { Menu, MenuItem } from '../../../components/Menu';
import * as chat from '../../../i18n/chat';
import { useText } from '../../../i18n/language';
import styles from './chat.module.css';

interface Props {
  agentId: string;
  /** Id of a message of the conversation that is shown. */
  shown: string | undefined;
  /** An engine that answers is not asked for its list. */
  isAnswering: boolean;
  onOpen: (id: string) => void;
}

/** Choose another conversation that the engine keeps; nothing if there is none. */
export function ConversationMenu({ agentId, shown, isAnswering, onOpen }: Props) {
  const t = useText(chat);
  const query = { ...conversationsQuery(agentId, shown), enabled: !isAnswering, placeholderData: keepPreviousData };
  const { data: found = [] } = useQuery(query);
  if (found.length < (shown === undefined ? 1 : 2)) return null;
  return (
    <Menu label={t.conversations} trigger={<Button>{t.conversations}</Button>}>
      {found.map(({ id, title }) => (
        <MenuItem key={id} textValue={title} onAction={() => onOpen(id)}>
          <span className={styles.title}>{title || id}</span>
        </MenuItem>
      ))}
    </Menu>
  );
}
