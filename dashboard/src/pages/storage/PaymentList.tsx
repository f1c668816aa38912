import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import {
  paymentsQuery,
  paymentTotalsQuery,
  type Instruction,
  type Payment,
  type PaymentState,
  type PaymentTotal,
} from '../../api/payments';
import { EmptyState } from '../../components/EmptyState';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Fields, Note } from '../../components/Row';
import { Select } from '../../components/Select';
import { StatusBadge, type Tone } from '../../components/StatusBadge';
import { Table, type Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { useLanguage, useText } from '../../i18n/language';
import * as payments from '../../i18n/payments';
import { describeAmount, networkName, shorten } from './amounts';

const STATES = ['settled', 'settling', 'refused', 'unknown'] as const satisfies readonly PaymentState[];
const TONES: Record<PaymentState, Tone> = { settled: 'ok', settling: 'busy', refused: 'danger', unknown: 'warn' };

/** What was earned, by instruction and token. */
export function TotalSection({ instructions }: { instructions: readonly Instruction[] }) {
  const t = useText(payments);
  const { language } = useLanguage();
  const totals = useQuery(paymentTotalsQuery).data?.totals ?? [];
  if (totals.length === 0) return null;
  const names = new Map(instructions.map(({ id, name }) => [id, name]));
  const columns: Column<PaymentTotal>[] = [
    { id: 'name', title: t.instruction, cell: ({ payment_instruction_id: id }) => names.get(id) ?? t.deletedInstruction },
    { id: 'count', title: t.count, align: 'end', cell: ({ count }) => count },
    { id: 'amount', title: t.amount, align: 'end', cell: (one) => describeAmount(one, t.units, language) },
    { id: 'network', title: t.network, secondary: true, cell: ({ network }) => networkName(network) },
  ];
  return (
    <Section title={t.totals}>
      <Table
        label={t.totals}
        columns={columns}
        rows={totals}
        rowKey={({ payment_instruction_id, network, asset }) => `${payment_instruction_id} ${network} ${asset}`}
      />
    </Section>
  );
}

interface Props {
  instructions: readonly Instruction[];
  /** Shows nothing while there is no payment. */
  isQuiet: boolean;
}

/** The payments that visitors made, newest first. */
export function PaymentSection({ instructions, isQuiet }: Props) {
  const t = useText(payments);
  const [state, setState] = useState<PaymentState | ''>('');
  const query = useInfiniteQuery(paymentsQuery(state));
  const rows = query.data?.pages.flatMap((page) => page.payments) ?? [];
  if (isQuiet && state === '' && rows.length === 0 && !query.error) return null;
  const names = new Map(instructions.map(({ id, name }) => [id, name]));
  return (
    <Section title={t.received}>
      {(rows.length > 0 || state !== '') && (
        <Fields>
          <Select
            label={t.state}
            choices={[{ id: '', label: t.anyState }, ...STATES.map((id) => ({ id, label: t.states[id] }))]}
            value={state}
            onChange={setState}
          />
        </Fields>
      )}
      <Loaded query={query}>
        {() =>
          rows.length === 0 ? (
            state === '' ? (
              <EmptyState title={t.noPayments}>{t.noPaymentsText}</EmptyState>
            ) : (
              <Note>{t.noPaymentsInState}</Note>
            )
          ) : (
            <PaymentTable payments={rows} names={names} />
          )
        }
      </Loaded>
      <LoadMore query={query} />
    </Section>
  );
}

function PaymentTable({ payments: rows, names }: { payments: readonly Payment[]; names: ReadonlyMap<string, string> }) {
  const t = useText(payments);
  const { language } = useLanguage();
  const columns: Column<Payment>[] = [
    { id: 'at', title: t.at, cell: ({ created_at }) => <Timestamp at={created_at} /> },
    {
      id: 'state',
      title: t.state,
      cell: ({ state, reason }) => (
        <>
          <StatusBadge tone={TONES[state]}>{t.states[state]}</StatusBadge>
          {reason && <Note small>{reason}</Note>}
        </>
      ),
    },
    { id: 'amount', title: t.amount, align: 'end', cell: (one) => describeAmount(one, t.units, language) },
    {
      id: 'name',
      title: t.instruction,
      secondary: true,
      cell: ({ payment_instruction_id: id }) => names.get(id) ?? t.deletedInstruction,
    },
    { id: 'file', title: t.file, secondary: true, cell: ({ cid }) => <Hash text={cid} /> },
    { id: 'payer', title: t.payer, secondary: true, cell: ({ payer }) => <Hash text={payer} /> },
    {
      id: 'transaction',
      title: t.transaction,
      secondary: true,
      cell: ({ transaction }) => transaction && <Hash text={transaction} />,
    },
  ];
  return <Table label={t.received} columns={columns} rows={rows} rowKey={({ id }) => id} />;
}

const Hash = ({ text }: { text: string }) => <code title={text}>{shorten(text)}</code>;
