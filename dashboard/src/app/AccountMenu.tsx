import { BookOpen, CircleUser, Languages, LogOut, MonitorX, SunMoon } from 'lucide-react';
import { useState } from 'react';

import { signOut, signOutEverywhere } from '../api/session';
import { Button } from '../components/Button';
import { Menu, MenuItem } from '../components/Menu';
import { LANGUAGES, useLanguage, useText, type Language } from '../i18n/language';
import * as help from '../i18n/help';
import * as shell from '../i18n/shell';
import { applyTheme, readTheme, type Theme } from './theme';
import { useMay, useSession } from './useSession';

const NEXT_THEME: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

export function AccountMenu() {
  const t = useText(shell);
  const { docs } = useText(help);
  const { language, choose } = useLanguage();
  const session = useSession();
  const may = useMay();
  const [theme, setTheme] = useState(readTheme);
  const other = (Object.keys(LANGUAGES) as Language[]).filter((one) => one !== language);
  const changeTheme = () => {
    applyTheme(NEXT_THEME[theme]);
    setTheme(NEXT_THEME[theme]);
  };
  const trigger = (
    <Button kind="quiet" iconOnly aria-label={t.account}>
      <CircleUser size={20} aria-hidden />
    </Button>
  );
  return (
    <Menu trigger={trigger} label={t.account}>
      {session && (
        <MenuItem isDisabled id="who">
          {session.tenant.name} · {t.roles[session.role]}
        </MenuItem>
      )}
      <MenuItem id="theme" onAction={changeTheme} shouldCloseOnSelect={false}>
        <SunMoon size={17} aria-hidden /> {t.theme[theme]}
      </MenuItem>
      {other.map((one) => (
        <MenuItem key={one} id={one} onAction={() => choose(one)}>
          <Languages size={17} aria-hidden /> {LANGUAGES[one]}
        </MenuItem>
      ))}
      <MenuItem id="docs" href="/docs/" target="_blank">
        <BookOpen size={17} aria-hidden /> {docs}
      </MenuItem>
      <MenuItem id="leave" onAction={() => void leave(signOut)}>
        <LogOut size={17} aria-hidden /> {t.signOut}
      </MenuItem>
      {may('owner') && (
        <MenuItem id="leave-everywhere" onAction={() => void leave(signOutEverywhere)}>
          <MonitorX size={17} aria-hidden /> {t.signOutEverywhere}
        </MenuItem>
      )}
    </Menu>
  );
}

/** End the session, and load the page again, which forgets all that was loaded: data, uploads, texts to restore. */
async function leave(end: () => Promise<void>) {
  await end();
  location.replace('/login');
}
