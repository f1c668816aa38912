import type { ReactNode } from 'react';
import { Tab, TabList, TabPanel, Tabs as AriaTabs } from 'react-aria-components';

import styles from './Tabs.module.css';

export interface TabEntry {
  readonly id: string;
  readonly title: string;
  readonly content: ReactNode;
}

export function Tabs({ label, tabs }: { label: string; tabs: readonly TabEntry[] }) {
  return (
    <AriaTabs className={styles.tabs!}>
      <TabList aria-label={label} className={styles.list!}>
        {tabs.map((tab) => (
          <Tab key={tab.id} id={tab.id} className={styles.tab!}>
            {tab.title}
          </Tab>
        ))}
      </TabList>
      {tabs.map((tab) => (
        <TabPanel key={tab.id} id={tab.id} className={styles.panel!}>
          {tab.content}
        </TabPanel>
      ))}
    </AriaTabs>
  );
}
