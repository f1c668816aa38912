import { useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useMatch } from '@tanstack/react-router';
import { PanelLeft, Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';

import { live, refreshOnEvents } from '../api/live';
import { Button } from '../components/Button';
import { showCurrent } from '../components/showCurrent';
import { ToastRegion } from '../components/Toast';
import { useText } from '../i18n/language';
import * as shell from '../i18n/shell';
import { AccountMenu } from './AccountMenu';
import { AgentBar } from './AgentBar';
import { LiveBadge } from './LiveBadge';
import { AGENT_PAGES } from './navigation';
import styles from './Shell.module.css';
import { usePages } from './usePages';

const Palette = lazy(() => import('./Palette'));
const COLLAPSED = 'roost.navigation';
const BAR_LENGTH = 4;

/** The frame of all pages: navigation at the left, a bar at the bottom of phones, and the page. */
export function Shell() {
  const t = useText(shell);
  const [isNarrow, setNarrow] = useState(() => localStorage.getItem(COLLAPSED) === 'narrow');
  const [isSearching, setSearching] = useState(false);
  useLiveConnection();
  usePaletteKey(() => setSearching(true));
  const toggle = () => {
    localStorage.setItem(COLLAPSED, isNarrow ? 'wide' : 'narrow');
    setNarrow(!isNarrow);
  };
  return (
    <div className={`${styles.shell} ${isNarrow ? styles.narrow : ''}`}>
      <a className={styles.skip} href="#content">
        {t.skip}
      </a>
      <SideNavigation isNarrow={isNarrow} onToggle={toggle} onSearch={() => setSearching(true)} />
      <div className={styles.main}>
        <AgentNavigation className={styles.strip!} />
        <AgentBar />
        <main id="content" className={styles.content} tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      <PhoneBar onSearch={() => setSearching(true)} />
      {isSearching && (
        <Suspense fallback={null}>
          <Palette onClose={() => setSearching(false)} />
        </Suspense>
      )}
      <ToastRegion />
    </div>
  );
}

interface SideProps {
  isNarrow: boolean;
  onToggle: () => void;
  onSearch: () => void;
}

function SideNavigation({ isNarrow, onToggle, onSearch }: SideProps) {
  const t = useText(shell);
  const pages = usePages();
  return (
    <aside className={styles.side}>
      <div className={styles.top}>
        <Link to="/" className={styles.logo} aria-label="Roost">
          <img src="/favicon.svg" alt="" width={26} height={26} />
          <span>Roost</span>
        </Link>
        <Button kind="quiet" iconOnly aria-label={isNarrow ? t.expand : t.collapse} onPress={onToggle}>
          <PanelLeft size={18} aria-hidden />
        </Button>
      </div>
      <button type="button" className={styles.search} aria-label={isNarrow ? t.commands : undefined} onClick={onSearch}>
        <Search size={17} aria-hidden />
        <span>{t.commands}</span>
        <kbd aria-hidden>Ctrl K</kbd>
      </button>
      <nav aria-label={t.navigation} className={styles.nav}>
        {pages.map(({ to, icon: Icon, label }) => (
          <div key={to}>
            <Link to={to} className={styles.link} activeOptions={{ exact: to === '/' }} title={t.pages[label]}>
              <Icon size={18} aria-hidden />
              <span>{t.pages[label]}</span>
            </Link>
            {to === '/agents' && <AgentNavigation className={styles.second!} />}
          </div>
        ))}
      </nav>
      <div className={styles.foot}>
        <LiveBadge />
        <AccountMenu />
      </div>
    </aside>
  );
}

function PhoneBar({ onSearch }: Pick<SideProps, 'onSearch'>) {
  const t = useText(shell);
  const pages = usePages();
  return (
    <nav aria-label={t.navigation} className={styles.bar}>
      {pages.slice(0, BAR_LENGTH).map(({ to, icon: Icon, label }) => (
        <Link key={to} to={to} className={styles.barLink} activeOptions={{ exact: to === '/' }}>
          <Icon size={20} aria-hidden />
          {t.pages[label]}
        </Link>
      ))}
      <button type="button" className={styles.barLink} onClick={onSearch}>
        <Search size={20} aria-hidden />
        {t.more}
      </button>
      <AccountMenu />
    </nav>
  );
}

/** The pages of the open agent: under "Agents" at the left, above the page on phones. */
function AgentNavigation({ className }: { className: string }) {
  const t = useText(shell);
  const match = useMatch({ from: '/shell/agents/$id', shouldThrow: false });
  const links = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  useEffect(() => showCurrent(links.current), [pathname]);
  if (!match) return null;
  return (
    <nav className={className} aria-label={t.agentPages} ref={links}>
      {AGENT_PAGES.map(({ to, icon: Icon, label }) => (
        <Link key={to} to={to} params={match.params} className={styles.link} title={t.pages[label]}>
          <Icon size={16} aria-hidden />
          <span>{t.pages[label]}</span>
        </Link>
      ))}
    </nav>
  );
}

function useLiveConnection(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const ends = [live.start(), refreshOnEvents(queries)];
    return () => {
      for (const end of ends) end();
    };
  }, [queries]);
}

function usePaletteKey(open: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        open();
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
}
