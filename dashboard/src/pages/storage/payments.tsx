import { useInfiniteQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { instructionsQuery, type Instruction } from '../../api/payments';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { EmptyState } from '../../components/EmptyState';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { useText } from '../../i18n/language';
import * as payments from '../../i18n/payments';
import { InstructionDialog } from './InstructionDialog';
import { InstructionSection } from './InstructionSection';
import { PaymentSection, TotalSection } from './PaymentList';
import { StoragePage } from './StoragePage';

export function StoragePaymentsPage() {
  const t = useText(payments);
  const may = useMay();
  const query = useInfiniteQuery(instructionsQuery);
  const [isCreating, setCreating] = useState(false);
  const instructions: readonly Instruction[] = query.data?.pages.flatMap((page) => page.payment_instructions) ?? [];
  const create = may('editor') && (
    <Button kind="primary" onPress={() => setCreating(true)}>
      <Plus size={17} aria-hidden /> {t.create}
    </Button>
  );
  return (
    <StoragePage title={t.title} lead={t.lead} actions={instructions.length > 0 && create}>
      <Loaded query={query}>
        {() => (
          <>
            {instructions.length === 0 ? (
              <EmptyState
                title={t.empty}
                action={create}
                command="roost payments instructions create articles --pay-to 0x... --amount 10000"
              >
                {t.emptyText}
              </EmptyState>
            ) : (
              instructions.map((one) => <InstructionSection key={one.id} instruction={one} />)
            )}
            <LoadMore query={query} />
            <TotalSection instructions={instructions} />
            <PaymentSection instructions={instructions} isQuiet={instructions.length === 0} />
          </>
        )}
      </Loaded>
      {isCreating && <InstructionDialog onClose={() => setCreating(false)} />}
    </StoragePage>
  );
}
